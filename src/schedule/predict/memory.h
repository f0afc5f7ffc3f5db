// Counts the bytes that a schedule keeps alive, by kind: at one moment, or as an upper bound.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "base/tier.h"
#include "schedule/check/happens_before.h"
#include "schedule/schedule.h"
#include "schedule/values.h"

namespace megalith {

enum class MemoryKind : uint8_t { parameters, gradients, optimizer, activations, saved, aside, workspace, staging };
inline constexpr int kMemoryKinds = 8;
std::string_view name(MemoryKind kind);

struct MemoryUse {
  std::array<int64_t, kMemoryKinds> bytes{};
  int64_t& operator[](MemoryKind kind) { return bytes[static_cast<size_t>(kind)]; }
  int64_t operator[](MemoryKind kind) const { return bytes[static_cast<size_t>(kind)]; }
  int64_t total() const;
};

// Memory that is in use before, during and after the step. It is 0 for a device. Gradients count only in a training step.
MemoryUse resident(const Schedule& schedule, Tier tier = Tier::host);

// Follows a step op by op. A value is alive from the start of the op that creates it to the end of the op that consumes it.
class MemoryLedger {
 public:
  explicit MemoryLedger(const Schedule& schedule, Tier tier = Tier::host);  // borrows the schedule
  void start(OpId op);
  void finish(OpId op);
  const MemoryUse& now() const { return now_; }
  const MemoryUse& peak() const { return peak_; }  // at the first moment with the highest total
  OpId peak_op() const { return peak_op_; }  // the op whose start led to the peak; kNoOp if the peak is resident()

 private:
  const Schedule& schedule_;
  Tier tier_;
  MemoryUse now_, peak_;
  OpId peak_op_ = kNoOp;
  Effects effects_;  // of the current op
};

// The peak, by kind, if the ops run one by one in the order of the list.
MemoryUse memory_in_order(const Schedule& schedule, Tier tier = Tier::host);

// An upper bound of memory over all interleavings of the lanes that the schedule allows.
struct MemoryBound {
  int64_t bytes = 0;
  OpId op = kNoOp;  // the op during which the bound may be reached
};
MemoryBound memory_bound(const Schedule& schedule, const HappensBefore& order, Tier tier = Tier::host);

}  // namespace megalith
