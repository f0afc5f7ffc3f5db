#include "base/log.h"

#include <fcntl.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <mutex>
#include <utility>

#include "base/files.h"

namespace megalith::log {
namespace {

spdlog::level::level_enum spdlog_level(Level level) {
  switch (level) {
    case Level::info: return spdlog::level::info;
    case Level::warn: return spdlog::level::warn;
    case Level::error: return spdlog::level::err;
  }
  return spdlog::level::err;
}

std::shared_ptr<spdlog::logger> recorder;  // writes to the file only; null if no file is open

// Calls a function for each message. It is placed before the terminal's sink.
class CallsBefore : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit CallsBefore(std::function<void()> call) : call_(std::move(call)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg&) override { call_(); }
  void flush_() override {}

 private:
  std::function<void()> call_;
};

}  // namespace

void start(bool quiet) {
  auto terminal = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  terminal->set_pattern("%v");
  terminal->set_level(quiet ? spdlog::level::warn : spdlog::level::info);
  auto logger = std::make_shared<spdlog::logger>("megalith", terminal);
  logger->set_level(spdlog::level::info);
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(logger);
  recorder = nullptr;
}

void to_file(const std::string& path) {
  // Tries to open the file first, because spdlog's exception does not contain errno.
  const int tried = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (tried < 0) throw_cannot("write", path, errno);
  ::close(tried);
  auto file = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
  file->set_pattern("%Y-%m-%d %H:%M:%S %l %v");
  spdlog::default_logger()->sinks().push_back(file);
  recorder = std::make_shared<spdlog::logger>("record", file);
  recorder->flush_on(spdlog::level::info);
}

void record(std::string_view line) {
  if (recorder) recorder->info(line);
}

void before_terminal_lines(std::function<void()> call) {
  auto& sinks = spdlog::default_logger()->sinks();
  auto calls = std::make_shared<CallsBefore>(std::move(call));
  // Same level as the terminal: no call for messages that go to the file only.
  if (!sinks.empty()) calls->set_level(sinks.front()->level());
  sinks.insert(sinks.begin(), calls);
}

void write(Level level, fmt::string_view format, fmt::format_args values) {
  if (spdlog::should_log(spdlog_level(level))) spdlog::log(spdlog_level(level), fmt::vformat(format, values));
}

}  // namespace megalith::log
