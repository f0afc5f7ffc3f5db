#pragma once

namespace megalith {

// Of the calling thread: what it does it does alone. The cores are the compute lane's; other lanes have one thread each,
// which streams and updates.
void keep_to_one_thread();

}  // namespace megalith
