// The process-wide log: warnings and errors to stderr, everything to the run's log.txt once there is one.
#pragma once
#include <fmt/core.h>

#include <functional>
#include <string>
#include <string_view>

namespace megalith::log {

// Call first in main. `quiet` keeps informational lines off the terminal (they still reach the file).
void start(bool quiet);
// From now on also append to this file. Throws UserError or Fault if it cannot be written.
void to_file(const std::string& path);
// From now on calls this before a line goes to the terminal, from any thread that logs.
void before_terminal_lines(std::function<void()> call);
// Adds a line to the file only, for what the terminal shows in another form. Nothing happens if there is no file.
void record(std::string_view line);

// This header does without spdlog, which compiles the formatting again in every file that logs.
enum class Level { info, warn, error };
void write(Level level, fmt::string_view format, fmt::format_args values);

template <class... Values>
void info(fmt::format_string<Values...> format, Values&&... values) {
  write(Level::info, format, fmt::make_format_args(values...));
}
template <class... Values>
void warn(fmt::format_string<Values...> format, Values&&... values) {
  write(Level::warn, format, fmt::make_format_args(values...));
}
template <class... Values>
void error(fmt::format_string<Values...> format, Values&&... values) {
  write(Level::error, format, fmt::make_format_args(values...));
}

}  // namespace megalith::log
