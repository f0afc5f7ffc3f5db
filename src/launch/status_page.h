// What a rank is doing, in a page of shared memory outside MPI: whoever watches the rank reads it without its help,
// also when it hangs, is stopped or is gone. Writing costs nanoseconds and never waits.
#pragma once
#include <array>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>

#include "base/error.h"
#include "schedule/schedule.h"

namespace megalith::launch {

enum class RankState : int32_t { starting, training, saving, stopping, finished, failed };
std::string_view name(RankState state);

inline constexpr int kPagePeers = 14;  // of an exchange's peers that are kept by number; the rest are counted

// One lane's op. Plain bytes: it lies in the page.
struct LaneStatus {
  uint64_t entered = 0;  // ops so far: a lane that makes progress changes it
  int32_t busy = 0;      // 1: in an op; 2: in an exchange between ops
  OpKind kind{};
  BlockId block = kNoBlock;
  MicroId micro = kNoMicro;
  double since_s = 0;      // CLOCK_MONOTONIC of this host
  double predicted_s = 0;  // the op alone; 0: not known
  char exchange[48] = {};  // what it waits in; empty: it waits for nobody
  int32_t peers_total = 0;
  std::array<int32_t, kPagePeers + 1> peers{};  // ranks it waits for
};

// How the rank stands as a whole.
struct RankStatus {
  RankState state = RankState::starting;
  int32_t code = 0;       // ExitCode, once finished or failed
  double ended_s = 0;     // CLOCK_MONOTONIC
  char message[1008] = {};  // of a failure
};

class StatusPage {
 public:
  StatusPage();  // nobody reads it
  StatusPage(const std::filesystem::path& file, int rank) : StatusPage() { share(file, rank); }
  ~StatusPage();
  StatusPage(const StatusPage&) = delete;
  StatusPage& operator=(const StatusPage&) = delete;

  // Makes the file: from now on others can read. Before any op. Fault when it cannot be made.
  void share(const std::filesystem::path& file, int rank);

  // Of the whole rank, any thread.
  void state(RankState state);
  void step(int64_t step, double predicted_s);  // the step that begins now
  void checkpoint(int64_t step);                // written and valid
  void end(ExitCode code, std::string_view message);  // failed where there is a message

  // Of a lane, that lane's thread.
  void enter(const Op& op, double predicted_s);
  void waiting(Lane lane, std::string_view exchange, std::span<const int> peers);  // in an op or between ops
  void arrived(Lane lane);  // the exchange is over, the op goes on
  void leave(Lane lane);

  struct Layout;  // as it lies in the file

 private:
  void publish(Lane lane);
  Layout* page_ = nullptr;
  std::array<LaneStatus, kLanes> lanes_;
  std::mutex mutex_;  // guards status_
  RankStatus status_;
};

// A page as its reader finds it.
struct PageReading {
  int32_t rank = 0, pid = 0;
  uint64_t started = 0;               // with the pid, who it is: process.h
  int64_t step = 0, checkpoint = -1;  // -1: none yet
  double step_predicted_s = 0;
  RankStatus status;
  std::array<LaneStatus, kLanes> lanes;
};
// Nothing where the file is no page (yet).
std::optional<PageReading> read_page(const std::filesystem::path& file);

double monotonic_seconds();

}  // namespace megalith::launch
