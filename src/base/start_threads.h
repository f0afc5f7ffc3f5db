// Starts threads on a system that may refuse to start more (`ulimit -u`, `ulimit -v`).
#pragma once
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

namespace megalith {

// Throws Fault if the system cannot start another thread.
std::thread start_thread(std::function<void()> work);

// Starts `count` threads; each calls `work` with its number. Starts fewer if the system allows no more. Throws Fault if it
// cannot start a single one.
std::vector<std::thread> start_threads(size_t count, const std::function<void(size_t)>& work);

}  // namespace megalith
