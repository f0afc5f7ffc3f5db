#include "launch/slurm.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "launch/process.h"

namespace megalith::launch {
namespace {

// Time between the signal and the time limit, so that the ranks can save.
constexpr int kWarning_s = 120;
constexpr std::string_view kNodeAddress = "NodeAddr=";

// Quotes a word for the shell.
std::string quoted(const std::string& word) {
  std::string text = "'";
  for (char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

// Quotes a value for sbatch, which has its own rules for quotes and backslashes.
std::string sbatch_quoted(const std::string& value) {
  constexpr const char* kPlain = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_./:=,%@+-";
  if (value.find_first_not_of(kPlain) == std::string::npos) return value;
  std::string text = "\"";
  for (char c : value) text += c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  return text + "\"";
}

void check_text(const std::string& key, const std::string& text) {
  const auto is_control = [](char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; };
  if (std::none_of(text.begin(), text.end(), is_control)) return;
  throw UserError({"", key, "text without control characters, because it becomes part of the job script",
                   print_ascii_json(nlohmann::json(text)), "remove line breaks and other control characters"});
}

void check_texts(const SlurmJob& job) {
  check_text("run.dir", job.name);
  check_text("--time", job.time);
  check_text("--partition", job.partition);
  check_text("--account", job.account);
  check_text("run.dir", job.output.string());
  check_text("current folder", job.folder.string());
  for (const std::string& each : job.options) check_text("--sbatch", each);
  for (const std::string& word : job.command) check_text("command line", word);
}

// Returns what a program wrote to its standard output and error, and its wait status.
std::pair<std::string, int> output_of(const std::vector<std::string>& command) {
  int out[2];
  if (::pipe2(out, O_CLOEXEC) != 0)
    throw Fault(fmt::format("cannot create a pipe for {}: {}", command.front(), std::strerror(errno)));
  const pid_t pid = spawn(command, {{}, out[1], 0, out[1]});
  ::close(out[1]);
  std::string said;
  char buffer[4096];
  for (ssize_t got; (got = ::read(out[0], buffer, sizeof buffer)) > 0 || (got < 0 && errno == EINTR);)
    if (got > 0) said.append(buffer, static_cast<size_t>(got));
  ::close(out[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return {said, status};
}

bool in_path(const std::string& program) {
  std::istringstream folders(std::getenv("PATH") ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (::access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  return false;
}

std::string one_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

}  // namespace

std::string batch_script(const SlurmJob& job) {
  check_texts(job);
  std::string text = "#!/bin/sh\n";
  auto option = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) text += fmt::format("#SBATCH --{}={}\n", name, sbatch_quoted(value));
  };
  option("job-name", job.name);
  option("nodes", fmt::format("{}", job.nodes));
  option("ntasks-per-node", fmt::format("{}", job.ranks_per_node));
  option("time", job.time);
  option("partition", job.partition);
  option("account", job.account);
  option("output", job.output.string());
  option("open-mode", "append");
  // The signal goes to the supervisor, which is the batch script's own process. It makes the ranks save and exit.
  option("signal", fmt::format("B:TERM@{}", kWarning_s));
  for (const std::string& each : job.options) text += fmt::format("#SBATCH {}\n", each);
  text += fmt::format("\ncd {} || exit 2\nexec", quoted(job.folder.string()));
  for (const std::string& word : job.command) text += " " + quoted(word);
  return text + fmt::format(" --ranks {}\n", job.nodes * job.ranks_per_node);
}

std::string submit(const std::filesystem::path& script) {
  if (!in_path("sbatch"))
    throw UserError({"", "sbatch", "Slurm's sbatch in PATH", "no sbatch",
                     fmt::format("install it (Debian: apt install slurm-client), or submit {} on a machine that has it",
                                 script.string())});
  const auto [said, status] = output_of({"sbatch", "--parsable", script.string()});
  if (status != 0) throw UserError({script.string(), "", "a job script that Slurm accepts", one_line(said),
                                    "check --partition, --account, --time and --sbatch"});
  return said.substr(0, said.find_first_of(";\n"));  // NUMBER[;CLUSTER]
}

std::vector<std::string> addresses_of_nodes() {
  const char* nodes = std::getenv("SLURM_JOB_NODELIST");
  if (!nodes || !in_path("scontrol")) return {};
  const auto [said, status] = output_of({"scontrol", "--oneliner", "show", "node", nodes});
  std::vector<std::string> addresses;
  std::istringstream words(status == 0 ? said : "");
  for (std::string word; words >> word;)
    if (word.starts_with(kNodeAddress)) addresses.push_back(word.substr(kNodeAddress.size()));
  return addresses;
}

}  // namespace megalith::launch
