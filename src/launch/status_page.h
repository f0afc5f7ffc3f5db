// The activity of a rank, in a page of shared memory outside MPI. Other processes read it without help of the rank, even
// if the rank hangs, is stopped or is dead. Writing costs nanoseconds and never waits.
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

// The page lists this number of peers of an exchange by rank. It only counts further peers.
inline constexpr int kPagePeers = 14;

// The op of one lane. Trivially copyable, as it is stored in the page.
struct LaneStatus {
  uint64_t entered = 0;  // number of ops so far; it changes if the lane makes progress
  int32_t busy = 0;      // 1: in an op; 2: in an exchange between ops
  OpKind kind{};
  BlockId block = kNoBlock;
  MicroId micro = kNoMicro;
  double since_s = 0;      // CLOCK_MONOTONIC of this host
  double predicted_s = 0;  // duration of the op alone; 0: not known
  char exchange[48] = {};  // name of the exchange it waits in; empty: it does not wait
  int32_t peers_total = 0;
  std::array<int32_t, kPagePeers + 1> peers{};  // ranks it waits for
};

// State of the rank as a whole.
struct RankStatus {
  RankState state = RankState::starting;
  int32_t code = 0;       // ExitCode, once finished or failed
  double ended_s = 0;     // CLOCK_MONOTONIC
  char message[1008] = {};  // the error, if it failed
};

class StatusPage {
 public:
  StatusPage();  // a private page that no other process reads
  StatusPage(const std::filesystem::path& file, int rank) : StatusPage() { share(file, rank); }
  ~StatusPage();
  StatusPage(const StatusPage&) = delete;
  StatusPage& operator=(const StatusPage&) = delete;

  // Creates the file, so that others can read the page. Call it before the first op. Throws Fault if the file cannot be
  // created.
  void share(const std::filesystem::path& file, int rank);

  // State of the whole rank. Any thread may call these.
  void state(RankState state);
  void step(int64_t step, double predicted_s);  // the step that begins now
  void checkpoint(int64_t step);                // the newest one that is written and valid
  void end(ExitCode code, std::string_view message);  // the state is `failed` if there is a message

  // State of one lane. Only the thread of that lane may call these.
  void enter(const Op& op, double predicted_s);
  void waiting(Lane lane, std::string_view exchange, std::span<const int> peers);  // in an op or between ops
  void arrived(Lane lane);  // the exchange is over, the op continues
  void leave(Lane lane);

  struct Layout;  // the format of the file

 private:
  void publish(Lane lane);
  Layout* page_ = nullptr;
  std::array<LaneStatus, kLanes> lanes_;
  std::mutex mutex_;  // guards status_
  RankStatus status_;
};

// The content of a page, as a reader gets it.
struct PageReading {
  int32_t rank = 0, pid = 0;
  uint64_t started = 0;               // start time; identifies the process together with pid, see process.h
  int64_t step = 0, checkpoint = -1;  // -1: none yet
  double step_predicted_s = 0;
  RankStatus status;
  std::array<LaneStatus, kLanes> lanes;
};
// Returns nothing if the file is not a page (yet).
std::optional<PageReading> read_page(const std::filesystem::path& file);

double monotonic_seconds();

}  // namespace megalith::launch
