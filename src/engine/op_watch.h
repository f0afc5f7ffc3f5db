// Keeps a rank's status page: which op every lane is in, and in an exchange whom it waits for.
#pragma once
#include <optional>
#include <thread>

#include "comm/wait.h"
#include "launch/status_page.h"
#include "schedule/schedule.h"

namespace megalith {

class OpWatch : public WaitObserver {
 public:
  explicit OpWatch(launch::StatusPage& page) : page_(page) {}  // borrowed

  // By the lane's thread, around an op. An op that throws stays: it is what the rank was in.
  void enter(const Op& op);
  void leave(const Op& op);

  // By whichever thread waits. Between ops (when a checkpoint begins, at the end) the thread that made this is the
  // compute lane; waits of other threads outside of ops are not kept.
  void wait_begins(const Wait& wait) override;
  void wait_ends(const Wait& wait) override;

 private:
  std::optional<Lane> lane() const;
  launch::StatusPage& page_;
  std::thread::id own_ = std::this_thread::get_id();
};

}  // namespace megalith
