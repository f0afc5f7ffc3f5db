// Keeps the status page of a rank up to date: which op every lane is in and, in an exchange, which ranks it waits for.
#pragma once
#include <optional>
#include <thread>

#include "comm/wait.h"
#include "launch/status_page.h"
#include "schedule/observer.h"

namespace megalith {

class StatusObserver final : public StepObserver, public WaitObserver {
 public:
  explicit StatusObserver(launch::StatusPage& page) : page_(page) {}  // borrowed

  void op_begins(const Op& op) override;
  void op_ends(const Op& op) override;

  // Called by the thread that waits. Between ops (when a checkpoint begins, at the end) the thread that created this object
  // counts as the compute lane. Waits of other threads outside of ops are not recorded.
  void wait_begins(const Wait& wait) override;
  void wait_ends(const Wait& wait) override;

 private:
  std::optional<Lane> lane() const;
  launch::StatusPage& page_;
  std::thread::id own_ = std::this_thread::get_id();
};

}  // namespace megalith
