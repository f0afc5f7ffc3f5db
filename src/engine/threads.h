// How many threads compute.
#pragma once
#include <cstdint>

namespace megalith {

// Sets the number of threads of LibTorch's loops and ours. Applies to loops that the calling thread starts.
void set_threads(int64_t threads);

// Makes the calling thread run its loops without other threads. The compute lane uses the cores. Every other lane has one
// thread, which streams and updates.
void keep_to_one_thread();

}  // namespace megalith
