// Shows that a new op needs only one entry in a table. Only this test registers the op, which is then checked, simulated and
// drawn, and gets a cost.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "schedule/check/checker.h"
#include "schedule/op_type.h"
#include "schedule/ops/compute.h"
#include "schedule/passes/training_step.h"
#include "schedule/predict/memory.h"
#include "schedule/predict/simulator.h"
#include "schedule/random_schedules.h"
#include "schedule/show/draw.h"
#include "schedule/toy_speeds.h"

namespace megalith {
namespace {

constexpr OpKind kAudit{200};  // reads the parameters of a block once per step, before they are updated

constexpr OpType kAuditType[] = {
    {.kind = kAudit, .name = "audit", .about = "reads the parameters of a block", .colour = "#123456", .letter = 'A',
     .due = [](const Schedule& s, BlockId b, MicroId) { return s.training && s.holds(b) ? Due::once : Due::never; },
     .effects = [](const Schedule&, const Op& op, Effects& out) { out.read(Value::parameters, op.block); },
     .cost = [](const Schedule&, const Op&, const MachineSpeeds& speeds) { return compute_cost(speeds, 0, 1e6); },
     .workspace = [](const Schedule&, const Op&) { return int64_t{1} << 40; }}};

Schedule audited() {
  Schedule step = training_step(make_blocks(3, false), 1);
  std::vector<Op> ops;
  std::vector<OpId> place;
  for (Op& op : step.ops) {
    for (OpId& after : op.after) after = place[static_cast<size_t>(after)];
    if (op.kind == ops::prepare_update)
      for (BlockId block = 0; block <= step.head(); block++) ops.push_back({.kind = kAudit, .block = block, .after = {}});
    place.push_back(static_cast<OpId>(ops.size()));
    ops.push_back(std::move(op));
  }
  step.ops = std::move(ops);
  return step;
}

std::string first_reason(const Schedule& schedule) {
  const std::vector<Problem> problems = check(schedule);
  return problems.empty() ? "" : problems.front().reason;
}

TEST(ToyOp, TheCheckerKnowsWhenItIsDue) {
  const ExtraOps registered(kAuditType);
  Schedule step = audited();
  EXPECT_EQ(first_reason(step), "");
  EXPECT_EQ(first_reason(training_step(make_blocks(3, false), 1)), "audit of embedding is missing");
  step.ops.push_back({.kind = kAudit, .block = 0, .after = {}});
  EXPECT_EQ(first_reason(step), "audit of embedding is done more than once");
}

TEST(ToyOp, TheCheckerKnowsWhatItReads) {
  const ExtraOps registered(kAuditType);
  Schedule step = audited();
  for (size_t i = 0; i < step.ops.size(); i++)
    if (step.ops[i].kind == kAudit) std::rotate(step.ops.begin() + long(i), step.ops.begin() + long(i) + 1, step.ops.end());
  EXPECT_NE(first_reason(step), "");
}

TEST(ToyOp, ItIsPricedSimulatedAndDrawn) {
  const ExtraOps registered(kAuditType);
  const Schedule step = audited(), without = training_step(make_blocks(3, false), 1);
  const MachineSpeeds& speeds = kToySpeeds;
  const Simulation simulation = simulate(step, predict_costs(step, speeds));
  EXPECT_GT(simulation.seconds, simulate(without, predict_costs(without, speeds)).seconds);
  EXPECT_GE(simulation.peak_bytes, int64_t{1} << 40);
  const std::string picture = draw_timeline(step, simulation.spans, 80);
  EXPECT_NE(picture.find("A audit"), std::string::npos) << picture;
}

TEST(ToyOp, AnUnknownOpIsABugNotACrash) { EXPECT_THROW(type_of(kAudit), Bug); }

TEST(ToyOp, TwoOpsWithOneLetterAreRefused) {
  static constexpr OpType kTwin[] = {{.kind = OpKind{201}, .name = "twin", .letter = 'F',
                                      .due = kAuditType[0].due, .effects = kAuditType[0].effects}};
  EXPECT_THROW(ExtraOps{kTwin}, Bug);
}

}  // namespace
}  // namespace megalith
