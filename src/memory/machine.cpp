#include "memory/machine.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

namespace megalith {
namespace {

constexpr const char* kSharedState = "megalith-state-";
std::atomic<bool> ranks_share_state = false;

// Value in KiB of a "Name:   123 kB" line; -1 if absent.
int64_t kib_field(const char* path, const std::string& field) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.rfind(field + ":", 0) == 0) return std::stoll(line.substr(field.size() + 1));
  return -1;
}

// Returns a correction in bytes for shared state. The kernel counts only a proportional share of each rank's state. The
// correction counts all of this rank's state, and nothing of other ranks' state.
int64_t shared_state_correction() {
  const std::string all = std::string("/memfd:") + kSharedState,
                    own = fmt::format("/memfd:{} ", shared_state_name(getpid()));
  enum { other, ours, theirs } mapping = other;
  int64_t kib = 0;
  std::ifstream file("/proc/self/smaps");
  for (std::string line; std::getline(file, line);) {
    if (!std::isupper(static_cast<unsigned char>(line[0])))  // a line with addresses begins a mapping
      mapping = line.find(all) == std::string::npos ? other : line.find(own) == std::string::npos ? theirs : ours;
    else if (mapping == ours && line.starts_with("Rss:")) kib += std::stoll(line.substr(4));
    else if (mapping != other && line.starts_with("Pss:")) kib -= std::stoll(line.substr(4));
  }
  return kib * 1024;
}

// Reads a file that contains one number. Returns -1 for "max" or if there is no such file.
int64_t number_in(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  if (!(file >> word) || word == "max") return -1;
  try {
    return std::stoll(word);
  } catch (const std::exception&) {
    return -1;
  }
}

// Seconds that a thread was ready to run but had no core; 0 if the kernel does not report it.
double waited_in(const std::filesystem::path& thread) {
  double ran = 0, waited = 0;  // nanoseconds
  return std::ifstream(thread / "schedstat") >> ran >> waited ? waited * 1e-9 : 0;
}

// Calls visit(directory) for the process's cgroup of a controller and all its parents, up to the mount point.
template <class Visit>
void each_cgroup(const std::string& controller, const Visit& visit) {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    std::istringstream parts(line);
    std::string id, controllers, path;
    std::getline(parts, id, ':');
    std::getline(parts, controllers, ':');
    std::getline(parts, path);
    bool v2 = controllers.empty();
    if (!v2 && ("," + controllers + ",").find("," + controller + ",") == std::string::npos) continue;
    std::string mount = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + controller;
    for (std::string at = path;; at = at.substr(0, at.rfind('/'))) {
      visit(mount + at, v2);
      if (at.empty() || at == "/") break;
    }
    visit(mount, v2);
  }
}

}  // namespace

Bytes usable_memory() {
  int64_t available = kib_field("/proc/meminfo", "MemAvailable") * 1024;
  each_cgroup("memory", [&](const std::string& dir, bool v2) {
    int64_t limit = number_in(dir + (v2 ? "/memory.max" : "/memory.limit_in_bytes"));
    if (limit > 0 && limit < (int64_t{1} << 60)) available = std::min(available, limit);
  });
  return Bytes(available - available / 16);
}

Bytes resident_memory() {
  // Pss_Anon and Pss_Shmem exclude the page cache of mapped files. Older kernels report only the RSS.
  int64_t anon = kib_field("/proc/self/smaps_rollup", "Pss_Anon");
  int64_t shared = kib_field("/proc/self/smaps_rollup", "Pss_Shmem");
  if (anon >= 0)
    return Bytes((anon + std::max<int64_t>(shared, 0)) * 1024 + (ranks_share_state ? shared_state_correction() : 0));
  return Bytes(std::max<int64_t>(kib_field("/proc/self/status", "VmRSS"), 0) * 1024);
}

Bytes peak_resident_memory() { return Bytes(std::max<int64_t>(kib_field("/proc/self/status", "VmHWM"), 0) * 1024); }

void expect_shared_state() { ranks_share_state = true; }

std::string shared_state_name(int64_t pid) { return fmt::format("{}{}", kSharedState, pid); }

double processor_wait_seconds() {
  double seconds = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) seconds += waited_in(thread.path());
  return seconds;
}

double thread_wait_seconds() { return waited_in("/proc/thread-self"); }

int64_t usable_cores() {
  cpu_set_t set;
  int64_t cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);
  each_cgroup("cpu", [&](const std::string& dir, bool v2) {
    double quota = -1, period = 100000;
    if (v2) {
      std::ifstream file(dir + "/cpu.max");
      std::string word;
      if (file >> word >> period && word != "max") quota = std::stod(word);
    } else {
      quota = static_cast<double>(number_in(dir + "/cpu.cfs_quota_us"));
      period = static_cast<double>(number_in(dir + "/cpu.cfs_period_us"));
    }
    if (quota > 0 && period > 0) cores = std::min<int64_t>(cores, std::max<int64_t>(1, std::llround(quota / period)));
  });
  return std::max<int64_t>(cores, 1);
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

}  // namespace megalith
