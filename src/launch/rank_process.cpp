#include "launch/rank_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/new_file.h"
#include "launch/host_link.h"
#include "launch/host_watch.h"
#include "launch/process.h"
#include "launch/rank_view.h"
#include "launch/host_monitor.h"

namespace megalith::launch {
namespace {

void redirect(int fd, const char* path, int flags) {
  const int file = ::open(path, flags | O_CLOEXEC, kSharedMode);
  if (file < 0) return;
  ::dup2(file, fd);
  ::close(file);
}

}  // namespace

RankProcess::RankProcess(const Environment& environment) : environment_(environment) {
  if (environment_.role == Role::supervised) join_supervisor();
}

void RankProcess::join_supervisor() {
  // A rank dies when its launcher dies, for any reason.
  const std::string parent = process_name(::getppid());
  if (parent == "mpirun" || parent == "orterun" || parent == "orted") ::prctl(PR_SET_PDEATHSIG, SIGKILL);

  const SupervisorAddress supervisor = SupervisorAddress::parse(std::getenv(kSupervisorVariable));
  const std::filesystem::path folder = make_host_folder(supervisor.run);
  const bool away = supervisor.host != host_identity();
  if (away && environment_.local_rank == 0) {
    HostFolder made(supervisor.run);
    fork_host_monitor(connect_to_supervisor(supervisor), made, MonitorPlace::away);
  }
  share_page(folder);
  for (const char* name : {"OMPI_MCA_btl_vader_backing_directory", "OMPI_MCA_osc_sm_backing_directory",
                           "OMPI_MCA_osc_rdma_backing_directory"})
    ::setenv(name, folder.c_str(), /*overwrite=*/0);

  const char* terminal = std::getenv(kTerminalVariable);
  if (terminal && !away && environment_.rank == 0) redirect(STDERR_FILENO, terminal, O_WRONLY | O_NOCTTY);
}

void RankProcess::share_page(const std::filesystem::path& folder) {
  page_.share(page_file(folder, environment_.rank), environment_.rank);
}

void RankProcess::begin(const RunSettings& run) {
  if (!environment_.several()) return;
  const std::filesystem::path run_dir = run.dir;
  std::error_code error;
  std::filesystem::create_directories(run_dir, error);
  if (environment_.role == Role::joined) {
    share_page(make_host_folder(joined_run_name()));
    if (environment_.local_rank == 0) fork_host_watch(HostFolder(joined_run_name()), run.watchdog, run_dir / "log.txt");
  }
  if (environment_.rank == 0) return;
  const std::string file = (run_dir / fmt::format("log-{}.txt", environment_.rank)).string();
  std::fflush(nullptr);
  redirect(STDOUT_FILENO, file.c_str(), O_WRONLY | O_CREAT | O_APPEND);
  redirect(STDERR_FILENO, file.c_str(), O_WRONLY | O_CREAT | O_APPEND);
  logging_ = true;
}

int RankProcess::end(ExitCode code, const std::string& message) {
  page_.end(code, message);
  if (!message.empty()) {
    // Without a supervisor, several ranks would print the same message. Rank 0 prints first. The launcher then ends the
    // others before they repeat it.
    if (environment_.role == Role::joined && environment_.rank > 0) ::sleep(1);
    const std::string who = environment_.several() ? fmt::format("rank {}: ", environment_.rank) : "";
    if (environment_.role != Role::supervised || logging_)
      std::fprintf(stderr, "megalith: %s%s\n", who.c_str(), message.c_str());
  }
  const bool orderly = code == ExitCode::interrupted && message.empty();
  return environment_.role == Role::supervised && orderly ? 0 : static_cast<int>(code);
}

}  // namespace megalith::launch
