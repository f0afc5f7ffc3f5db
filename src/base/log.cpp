#include "base/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <memory>

namespace megalith::log {

void start(bool quiet) {
  auto terminal = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  terminal->set_pattern("%v");
  terminal->set_level(quiet ? spdlog::level::warn : spdlog::level::info);
  auto logger = std::make_shared<spdlog::logger>("megalith", terminal);
  logger->set_level(spdlog::level::info);
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(logger);
}

void to_file(const std::string& path) {
  auto file = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
  file->set_pattern("%Y-%m-%d %H:%M:%S %l %v");
  spdlog::default_logger()->sinks().push_back(file);
}

}  // namespace megalith::log
