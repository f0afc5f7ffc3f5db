#include "run/run_directory.h"

#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/new_file.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_directory(const std::filesystem::path& path, const std::string& reason) {
  throw UserError({"", "run.dir", "a directory that can be written", path.string(), reason});
}

// Files that a run first writes under another name, NAME.*.tmp.
struct OwnFile {
  std::string_view folder, name;
  bool any_begin = false;  // `name` is how the name ends
};
constexpr OwnFile kOwnFiles[] = {{"", "config.yaml"},    {"", "plan.json"},     {"", "summary.json"},
                                 {"", "trace.json"},     {"", "report.html"},   {"", "metrics.jsonl"},
                                 {"", "tokenizer.json"}, {"", "tokenizer_config.json"},
                                 {"analysis", "analysis.html"}, {"analysis", "begun_with.json"},
                                 {"data", ".partial.json", /*any_begin=*/true}};

// Returns NAME for NAME.*.tmp, otherwise an empty name.
std::string_view name_of_aside(std::string_view file) {
  constexpr std::string_view kEnd = ".tmp";
  if (!file.ends_with(kEnd)) return {};
  file.remove_suffix(kEnd.size());
  return file.substr(0, file.rfind('.') == file.npos ? 0 : file.rfind('.'));
}

// Removes the temporary files that a killed process left. The caller must hold the lock.
void remove_left_over_files(const fs::path& run_dir) {
  for (const std::string_view folder : {"", "analysis", "data"}) {
    std::error_code error;
    for (fs::directory_iterator it(run_dir / folder, error), end; !error && it != end; it.increment(error)) {
      const std::string file = it->path().filename().string();
      const std::string_view name = name_of_aside(file);
      const bool own = std::ranges::any_of(kOwnFiles, [&](const OwnFile& each) {
        return each.folder == folder && (each.any_begin ? name.ends_with(each.name) : name == each.name);
      });
      std::error_code failed;
      if (!own || it->symlink_status(failed).type() != fs::file_type::regular) continue;
      if (fs::remove(it->path(), failed); failed)
        log::warn("{}: cannot remove this file that a killed process left: {}", it->path().string(), failed.message());
    }
  }
}

}  // namespace

RunDirectory::RunDirectory(const std::filesystem::path& path, bool leads) : path_(path) {
  if (!leads) return;
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  const auto refuse = [](const std::filesystem::path& what, int reason) {
    if (is_machine_fault(reason)) throw_cannot("create", what, reason);
    refuse_directory(what, std::strerror(reason));
  };
  if (error) refuse(path_, error.value());
  lock_ = open_or_create_file(path_ / ".lock");
  if (lock_ < 0) refuse(path_ / ".lock", errno);
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    ::close(lock_);
    lock_ = -1;
    throw UserError({"", "run.dir", "a directory that no other training process is using", path_.string(),
                     "another process is training in this directory: wait for it, or choose another run.dir"});
  }
  remove_left_over_files(path_);
}

RunDirectory::~RunDirectory() {
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace megalith
