// A run without training: ranks that step together over MPI, save a number, and fail when they are told to.
//   fake_run --dir DIR --ranks N [--steps N] [--step-ms N] [--fault RANK:STEP:KIND]...
// Kinds: kill, segv, exit (signals, and a process that ends without a report), stop (SIGSTOP), spin (never leaves its
// op), absent (leaves its op and never begins the next), user, bug, fault (errors). A fault happens once: the file
// DIR/did-RANK-STEP records it. KIND! happens every time.
#include <mpi.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <string>

#include "base/files.h"
#include "base/log.h"
#include "launch/rank_process.h"
#include "launch/supervisor.h"
#include "schedule/ops/all.h"

using namespace megalith;
using namespace megalith::launch;

namespace {

struct Settings {
  std::filesystem::path dir;
  int ranks = 0, steps = 20, step_ms = 20;
  int64_t restarts = 3, watchdog = 0, every = 5;
  std::string hosts, interface;
  std::vector<std::string> faults;
  int least_ranks = 1;  // smallest number of ranks for the layout
};

volatile std::sig_atomic_t asked_to_stop = 0;

class FakeRank {
 public:
  FakeRank(const Settings& settings, RankProcess& process) : settings_(settings), process_(process), page_(process.page()) {
    process.begin({.dir = settings.dir.string(), .watchdog = settings.watchdog});
    for (int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { asked_to_stop = 1; });
    MPI_Init(nullptr, nullptr);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    for (int r = 0; r < size_; r++)
      if (r != rank_) others_.push_back(r);
    void* memory = nullptr;  // a shared mapping, as training has one
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host_);
    MPI_Win_allocate_shared(1 << 16, 1, MPI_INFO_NULL, host_, &memory, &window_);
    std::ofstream(settings.dir / fmt::format("pid-{}", rank_)) << ::getpid() << "\n";
  }

  ExitCode run() {
    int64_t step = saved_step();
    if (step > 0) page_.checkpoint(step);
    if (rank_ == 0) std::fprintf(stderr, "beginning at step %d on %d ranks\n", static_cast<int>(step), size_);
    std::fprintf(stderr, "rank %d is here\n", rank_);
    page_.state(RankState::training);
    bool stop = false;
    while (step < settings_.steps && !stop) {
      page_.step(step, 1e-3 * settings_.step_ms);
      compute(step);
      stop = exchange();
      step++;
      if (stop || step % settings_.every == 0 || step == settings_.steps) save(step);
      if (rank_ == 0) std::ofstream(settings_.dir / "steps", std::ios::app) << step << "\n";
    }
    MPI_Win_free(&window_);
    MPI_Finalize();
    if (rank_ == 0) std::printf("{\"steps\": %d}\n", static_cast<int>(step));
    return stop && step < settings_.steps ? ExitCode::interrupted : ExitCode::done;
  }

 private:
  int64_t saved_step() const {
    std::ifstream file(settings_.dir / "checkpoint");
    int64_t step = 0;
    file >> step;
    return step;
  }

  void save(int64_t step) {
    page_.state(RankState::saving);
    if (rank_ == 0) {
      write_file_atomically(settings_.dir / "checkpoint", fmt::format("{}\n", step));
      page_.checkpoint(step);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    page_.state(RankState::training);
  }

  void compute(int64_t step) {
    page_.enter({ops::backward, 3, 1, Lane::compute, {}}, 1e-3 * settings_.step_ms);
    ::usleep(static_cast<useconds_t>(settings_.step_ms) * 1000);
    std::string kind = fault_at(step);
    if (kind == "kill") std::raise(SIGKILL);
    if (kind == "segv") std::raise(SIGSEGV);
    if (kind == "exit") ::_exit(0);
    if (kind == "stop") std::raise(SIGSTOP);
    if (kind == "user") throw UserError({"run.yaml:3", "train.lr", "a number above 0", "-1", ""});
    if (kind == "bug") fail_assert("fake_run.cpp", 1, "false", "as told");
    if (kind == "fault") throw Fault("the disk is full, as told");
    for (volatile bool forever = kind == "spin"; forever;) {
    }
    page_.leave(Lane::compute);
    if (kind == "absent")
      for (;;) ::pause();
  }

  // All ranks meet and decide together whether to stop.
  bool exchange() {
    page_.enter({ops::gradient_norm, 3, kNoMicro, Lane::net, {}}, 1e-3);
    page_.waiting(Lane::net, "all-reduce", others_);
    int mine = asked_to_stop, all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    page_.leave(Lane::net);
    return all != 0;
  }

  std::string fault_at(int64_t step) const {
    const std::string here = fmt::format("{}:{}:", rank_, step);
    for (std::string fault : settings_.faults) {
      if (!fault.starts_with(here)) continue;
      fault.erase(0, here.size());
      if (fault.ends_with('!')) return fault.substr(0, fault.size() - 1);
      const std::filesystem::path did = settings_.dir / fmt::format("did-{}-{}", rank_, step);
      if (std::filesystem::exists(did)) continue;
      std::ofstream{did};
      return fault;
    }
    return "";
  }

  const Settings& settings_;
  RankProcess& process_;
  StatusPage& page_;
  int rank_ = 0, size_ = 1;
  std::vector<int> others_;
  MPI_Comm host_{};
  MPI_Win window_{};
};

int run_rank(const Settings& settings, const Environment& environment) {
  RankProcess process(environment);
  try {
    return process.end(FakeRank(settings, process).run(), "");
  } catch (const UserError& error) {
    ::_exit(process.end(ExitCode::user, error.what()));  // without MPI_Finalize: the other ranks do not call it
  } catch (const Fault& error) {
    ::_exit(process.end(ExitCode::fault, error.what()));
  } catch (const std::exception& error) {
    ::_exit(process.end(ExitCode::bug, error.what()));
  }
}

int run_supervisor(const Settings& settings, int argc, char** argv) {
  std::filesystem::create_directories(settings.dir);
  log::to_file((settings.dir / "log.txt").string());
  Job job{own_command(argc, argv),
          settings.ranks,
          parse_hosts(settings.hosts),
          settings.interface,
          settings.restarts,
          settings.watchdog,
          settings.dir,
          [&] {
            const auto file = settings.dir / "checkpoint";
            return std::filesystem::exists(file) ? file.string() : "";
          },
          [&](int available) { return available >= settings.least_ranks ? available : 0; }};
  const Ending ending = supervise(std::move(job));
  if (!ending.message.empty()) std::fprintf(stderr, "megalith: %s\n", ending.message.c_str());
  return static_cast<int>(ending.code);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("ranks without training");
  Settings settings;
  app.add_option("--dir", settings.dir)->required();
  app.add_option("--ranks", settings.ranks);
  app.add_option("--steps", settings.steps);
  app.add_option("--step-ms", settings.step_ms);
  app.add_option("--restarts", settings.restarts);
  app.add_option("--watchdog", settings.watchdog);
  app.add_option("--every", settings.every);
  app.add_option("--hosts", settings.hosts);
  app.add_option("--interface", settings.interface);
  app.add_option("--fault", settings.faults);
  app.add_option("--least-ranks", settings.least_ranks);
  CLI11_PARSE(app, argc, argv);
  log::start(false);
  try {
    const Environment found = environment();
    if (found.role != Role::alone) return run_rank(settings, found);
    return run_supervisor(settings, argc, argv);
  } catch (const UserError& error) {
    std::fprintf(stderr, "megalith: %s\n", error.what());
    return static_cast<int>(ExitCode::user);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "megalith: %s\n", error.what());
    return static_cast<int>(ExitCode::fault);
  }
}
