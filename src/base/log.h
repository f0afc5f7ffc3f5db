// The process-wide log: warnings and errors to stderr, everything to the run's log.txt once there is one.
#pragma once
#include <spdlog/spdlog.h>

#include <string>

namespace megalith::log {

// Call first in main. `quiet` keeps informational lines off the terminal (they still reach the file).
void start(bool quiet);
// From now on also append to this file.
void to_file(const std::string& path);

using spdlog::error;
using spdlog::info;
using spdlog::warn;

}  // namespace megalith::log
