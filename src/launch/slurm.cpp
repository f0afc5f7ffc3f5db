#include "launch/slurm.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <sstream>

#include "base/error.h"
#include "launch/process.h"

namespace megalith::launch {
namespace {

// Before the time limit, so that the ranks can save.
constexpr int kWarning_s = 120;

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
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
  std::string text = "#!/bin/sh\n";
  auto option = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) text += fmt::format("#SBATCH --{}={}\n", name, value);
  };
  option("job-name", job.name);
  option("nodes", fmt::format("{}", job.nodes));
  option("ntasks-per-node", fmt::format("{}", job.ranks_per_node));
  option("time", job.time);
  option("partition", job.partition);
  option("account", job.account);
  option("output", job.output.string());
  option("open-mode", "append");
  // To the supervisor, which is the batch script's own process; it has the ranks save and leave.
  option("signal", fmt::format("B:TERM@{}", kWarning_s));
  for (const std::string& each : job.options) text += fmt::format("#SBATCH {}\n", each);
  text += fmt::format("\ncd {} || exit 2\nexec", quoted(job.folder.string()));
  for (const std::string& word : job.command) text += " " + quoted(word);
  return text + fmt::format(" --ranks {}\n", job.nodes * job.ranks_per_node);
}

std::string submit(const std::filesystem::path& script) {
  if (!in_path("sbatch"))
    throw UserError({"", "sbatch", "Slurm's sbatch in PATH, which takes the job", "none",
                     fmt::format("hand in {} where there is one (Debian: apt install slurm-client)", script.string())});
  int out[2];
  if (::pipe2(out, O_CLOEXEC) != 0) throw Fault("no pipe for sbatch");
  const pid_t pid = spawn({"sbatch", "--parsable", script.string()}, {{}, out[1], 0, out[1]});
  ::close(out[1]);
  std::string said;
  char buffer[4096];
  for (ssize_t got; (got = ::read(out[0], buffer, sizeof buffer)) > 0 || (got < 0 && errno == EINTR);)
    if (got > 0) said.append(buffer, static_cast<size_t>(got));
  ::close(out[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (status != 0) throw UserError({script.string(), "", "a job that Slurm takes", one_line(said), ""});
  return said.substr(0, said.find_first_of(";\n"));  // NUMBER[;CLUSTER]
}

}  // namespace megalith::launch
