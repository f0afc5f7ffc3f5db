// How many threads compute.
#pragma once
#include <cstdint>

namespace megalith {

// Of LibTorch's loops and ours, started by the thread that computes.
void set_threads(int64_t threads);

// Of the calling thread: what it does it does alone. The cores are the compute lane's; other lanes have one thread each,
// which streams and updates.
void keep_to_one_thread();

}  // namespace megalith
