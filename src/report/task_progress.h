// Progress of a task with a known number of bytes: a live line on a terminal, a plain line every few seconds elsewhere.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "report/live_line.h"

namespace megalith {

class TaskProgress {
 public:
  struct Options {
    std::FILE* out = stderr;
    std::optional<bool> terminal;   // default: true if `out` is a terminal
    std::function<double()> clock;  // seconds; default: steady clock
    double plain_seconds = 10;      // plain output: time between lines
  };
  // `what` names the task: "tokenizing".
  explicit TaskProgress(std::string what) : TaskProgress(std::move(what), Options()) {}
  TaskProgress(std::string what, Options options);

  // The first call says where this process begins. `result` describes the result so far: "5.2M tokens".
  void update(int64_t done_bytes, int64_t total_bytes, const std::string& result);

 private:
  std::string what_;
  Options options_;
  LiveLine line_;
  double began_ = -1, printed_ = 0;
  int64_t first_ = 0;  // bytes done before this process
};

}  // namespace megalith
