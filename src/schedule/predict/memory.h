// How many bytes a schedule keeps alive, by kind, at a moment or at worst.
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

// What is there before, during and after the step: of a device nothing. Gradients count in a training step only.
MemoryUse resident(const Schedule& schedule, Tier tier = Tier::host);

// Follows a step op by op: what an op makes is alive from its start, what it takes until its end.
class MemoryLedger {
 public:
  explicit MemoryLedger(const Schedule& schedule, Tier tier = Tier::host);  // borrows the schedule
  void start(OpId op);
  void finish(OpId op);
  const MemoryUse& now() const { return now_; }
  const MemoryUse& peak() const { return peak_; }  // at the first moment of the highest total
  OpId peak_op() const { return peak_op_; }  // whose start led there; kNoOp: what is resident is the peak

 private:
  const Schedule& schedule_;
  Tier tier_;
  MemoryUse now_, peak_;
  OpId peak_op_ = kNoOp;
  Effects effects_;  // of the op at hand
};

// By kind at the highest moment when the ops run one by one, as they are listed.
MemoryUse memory_in_order(const Schedule& schedule, Tier tier = Tier::host);

// An upper bound over all interleavings that the schedule allows. Needs a complete order.
struct MemoryBound {
  int64_t bytes = 0;
  OpId op = kNoOp;  // while it runs
};
MemoryBound memory_bound(const Schedule& schedule, const HappensBefore& order, Tier tier = Tier::host);

}  // namespace megalith
