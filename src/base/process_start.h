// What both programs do before anything else.
#pragma once

namespace megalith {

// Opens /dev/null for each standard stream that is closed. Otherwise the next file that is opened gets its number, and
// messages end in that file. Also ignores SIGXFSZ: a write above `ulimit -f` then fails, and the fault is reported.
void prepare_process();

}  // namespace megalith
