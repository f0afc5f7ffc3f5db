#include "launch/mpirun.h"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "base/error.h"

namespace megalith::launch {

std::vector<HostSlots> parse_hosts(const std::string& text) {
  std::vector<HostSlots> hosts;
  std::istringstream list(text);
  for (std::string item; std::getline(list, item, ',');) {
    HostSlots host{item.substr(0, item.find(':')), 1};
    const std::string slots = item.size() > host.host.size() ? item.substr(host.host.size() + 1) : "1";
    auto [end, error] = std::from_chars(slots.data(), slots.data() + slots.size(), host.slots);
    if (host.host.empty() || error != std::errc() || end != slots.data() + slots.size() || host.slots < 1)
      throw UserError({"command line", "--hosts", "a list of HOST:RANKS, for example a:2,b:2", item, ""});
    hosts.push_back(host);
  }
  return hosts;
}

std::string find_mpirun() {
  std::istringstream folders(std::getenv("PATH") ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (std::string file = folder + "/mpirun"; ::access(file.c_str(), X_OK) == 0) return file;
  throw UserError({"", "mpirun", "OpenMPI's mpirun in PATH (it starts the ranks)", "no mpirun",
                   "install OpenMPI (Debian: apt install openmpi-bin)"});
}

std::vector<std::string> mpirun_command(const std::string& mpirun, const MpirunCall& call) {
  // We place the threads of ranks ourselves. More ranks than cores are allowed: the user has asked for them.
  std::vector<std::string> words{mpirun, "-np", fmt::format("{}", call.ranks), "--bind-to", "none", "--oversubscribe"};
  if (!call.hosts.empty()) {
    std::string list;
    for (const HostSlots& host : call.hosts) list += fmt::format("{}{}:{}", list.empty() ? "" : ",", host.host, host.slots);
    words.insert(words.end(), {"--host", list});
  }
  for (const auto& [name, value] : call.environment) words.insert(words.end(), {"-x", name});
  words.insert(words.end(), call.command.begin(), call.command.end());
  return words;
}

Variables mpirun_environment(const MpirunCall& call, const std::string& guard, bool root,
                             const std::function<const char*(const char*)>& get) {
  const bool guarded = !call.several_hosts || (!get("OMPI_MCA_oob_tcp_if_include") && !get("OMPI_MCA_btl_tcp_if_include"));
  const char* others = get("LD_PRELOAD");
  const Variables guard_settings{{"LD_PRELOAD", others && *others ? fmt::format("{}:{}", guard, others) : guard},
                                {"MEGALITH_BIND", call.networks}};
  Variables settings{
      {"OMPI_MCA_mpi_yield_when_idle", "1"},            // a waiting rank yields its core to a rank that computes
      {"OMPI_MCA_orte_tmpdir_base", call.folder.string()},
      {"OMPI_MCA_odls_base_num_threads", "0"},          // the main thread forks the ranks: they die when it ends
      {"OMPI_MCA_oob_tcp_if_include", call.networks},
      {"OMPI_MCA_btl_tcp_if_include", call.networks},
  };
  if (!call.several_hosts) {
    settings.insert(settings.end(), {{"OMPI_MCA_pml", "ob1"}, {"OMPI_MCA_btl", "self,vader"}});
  } else if (guarded) {
    std::string agent = "env";  // ssh starts the daemons of other hosts and passes no environment
    for (const auto& [name, value] : guard_settings) agent += fmt::format(" {}={}", name, value);
    settings.emplace_back("OMPI_MCA_orte_launch_agent", agent + " orted");
  }
  if (root) settings.insert(settings.end(), {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}});
  std::erase_if(settings, [&](const auto& setting) { return get(setting.first.c_str()) != nullptr; });
  if (guarded) settings.insert(settings.end(), guard_settings.begin(), guard_settings.end());
  settings.insert(settings.end(), call.environment.begin(), call.environment.end());
  return settings;
}

namespace {

// True for a message of mpirun or its libraries outside of its paragraphs. Such lines begin with [host:pid] or
// [host][[job
bool is_remark(const std::string& line) {
  int pid = 0, length = 0;
  if (std::sscanf(line.c_str(), "[%*[^]:]:%d] %n", &pid, &length) == 1 && length > 0) return true;
  if (line.starts_with('[') && line.find("][[") < line.find(' ')) return true;
  return line.starts_with("[warn] Epoll ") ||
         line.find(" total processes killed (some possibly by mpirun") != std::string::npos;
}

}  // namespace

std::string MpirunSays::take(const std::string& text) {
  std::string ranks;
  line_ += text;
  for (size_t end; (end = line_.find('\n')) != std::string::npos; line_.erase(0, end + 1)) {
    const std::string line = line_.substr(0, end + 1);
    // mpirun's paragraphs are between lines of dashes.
    const bool dashes = line.size() > 60 && line.find_first_not_of('-') == line.size() - 1;
    if (dashes || in_banner_ || is_remark(line)) own_ += line;
    else ranks += line;
    if (dashes) in_banner_ = !in_banner_;
  }
  return ranks;
}

std::string MpirunSays::rest() { return in_banner_ ? "" : std::exchange(line_, ""); }

std::optional<MpirunSays::Death> MpirunSays::death() const {
  const size_t at = own_.find("noticed that process rank");
  if (at == std::string::npos) return std::nullopt;
  Death death;
  int pid = 0;
  char host[256] = {};
  if (std::sscanf(own_.c_str() + at, "noticed that process rank %d with PID %d on node %255s exited on signal %d",
                  &death.rank, &pid, host, &death.signal) != 4)
    return std::nullopt;
  death.host = host;
  return death;
}

std::string MpirunSays::first_words() const {
  std::string words;
  std::istringstream lines(own_);
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = line.find_first_not_of(" -");
    if (begin == std::string::npos) {
      if (!words.empty()) break;
      continue;
    }
    words += (words.empty() ? "" : " ") + line.substr(line.find_first_not_of(' '));
    if (words.size() > 300) break;
  }
  return words;
}

}  // namespace megalith::launch
