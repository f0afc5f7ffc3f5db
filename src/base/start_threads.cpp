#include "base/start_threads.h"

#include <system_error>
#include <utility>

#include "base/error.h"

namespace megalith {

std::thread start_thread(std::function<void()> work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error& error) {
    throw Fault(fmt::format("cannot start a thread: {} (see ulimit -u and ulimit -v)", error.code().message()));
  }
}

std::vector<std::thread> start_threads(size_t count, const std::function<void(size_t)>& work) {
  std::vector<std::thread> threads;
  threads.reserve(count);  // no allocation may throw between two starts: a running thread must be joined
  for (size_t i = 0; i < count; i++) {
    try {
      threads.push_back(start_thread([work, i] { work(i); }));
    } catch (const std::exception&) {
      if (threads.empty()) throw;
      break;
    }
  }
  return threads;
}

}  // namespace megalith
