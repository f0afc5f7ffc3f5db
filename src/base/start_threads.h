// Starting threads on a system that may have none left (`ulimit -u`, `ulimit -v`).
#pragma once
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

namespace megalith {

// Throws Fault if the system has no thread left.
std::thread start_thread(std::function<void()> work);

// Starts up to `count` threads, each with its number: fewer if the system has no more. Fault if it has none at all.
std::vector<std::thread> start_threads(size_t count, const std::function<void(size_t)>& work);

}  // namespace megalith
