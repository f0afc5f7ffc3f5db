// The first thing that both programs do.
#pragma once

namespace megalith {

// Opens /dev/null for each standard stream that is closed. Otherwise the next file that is opened would get the number of
// that stream, and messages would go into the file. Also ignores SIGXFSZ: a write above `ulimit -f` then fails with an
// error, which is reported as a fault.
void prepare_process();

}  // namespace megalith
