// The log of the process. Messages go to stderr and, after to_file(), to the run's log.txt.
#pragma once
#include <fmt/core.h>

#include <functional>
#include <string>
#include <string_view>

namespace megalith::log {

// Call this first in main. With `quiet`, informational lines go to the file only, not to the terminal.
void start(bool quiet);
// From now on, also appends all messages to this file. Throws UserError or Fault if the file cannot be written.
void to_file(const std::string& path);
// From now on, calls `call` before each line that goes to the terminal. Any thread that logs may make the call.
void before_terminal_lines(std::function<void()> call);
// Adds a line to the file only. Use it for facts that the terminal shows in another form. Does nothing without a file.
void record(std::string_view line);

// This header does not include spdlog, because then every file that logs would compile the formatting again.
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
