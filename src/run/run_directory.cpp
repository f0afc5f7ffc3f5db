#include "run/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "config/parse.h"
#include "config/resolved.h"

namespace megalith {

RunDirectory::RunDirectory(const std::filesystem::path& path, bool leads) : path_(path) {
  if (!leads) return;
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  auto refuse = [&](const std::string& reason) {
    throw UserError({"", "run.dir", "a directory that can be written", path_.string(), reason});
  };
  if (error) refuse(error.message());
  lock_ = ::open((path_ / ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock_ < 0) refuse(std::strerror(errno));
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    ::close(lock_);
    lock_ = -1;
    throw UserError({"", "run.dir", "a directory that no other process trains in", path_.string(),
                     "another process is training there: wait for it, or choose another run.dir"});
  }
}

RunDirectory::~RunDirectory() {
  if (lock_ >= 0) ::close(lock_);
}

std::optional<Config> saved_config(const std::filesystem::path& run_dir) {
  const std::filesystem::path file = run_dir / "config.yaml";
  if (!std::filesystem::exists(file)) return std::nullopt;
  return parse_config(read_file(file), file.string(), run_dir.filename().string());
}

void RunDirectory::save_config(const Config& config) const { write_file_atomically(file("config.yaml"), to_yaml(config)); }

Config continue_config(const Config& saved, const Config& now) {
  Config next = keep_decisions(saved, now);
  std::string fixed;
  std::vector<std::string> harmless;
  for (const Difference& d : differences(saved, next)) {
    std::string change = fmt::format("{} from {} to {}", d.key, d.before, d.after);
    if (d.may_change) harmless.push_back(std::move(change));
    else fixed += (fixed.empty() ? "" : ", ") + change;
  }
  if (!fixed.empty())
    throw UserError({next.run.dir, "", "the settings that this run began with", fixed,
                     "set them back, or give another run.dir to begin anew"});
  for (const std::string& change : harmless) log::info("continues with {}", change);
  return next;
}

}  // namespace megalith
