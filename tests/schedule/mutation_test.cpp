// Damaged schedules: whatever the checker lets through must do no harm when it is executed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "schedule/checker.h"
#include "schedule/fake_blocks.h"
#include "schedule/random_schedules.h"

namespace megalith {
namespace {

enum Mutation { deletion, swapped_order, swapped_places, removed_dependency, kMutations };
constexpr const char* kNames[] = {"deletion", "swapped order", "swapped places", "removed dependency"};

// The schedule with its ops in another order (place i takes op order[i]); `after` follows the ops, and
// forgets those that are gone.
Schedule reorder(const Schedule& schedule, const std::vector<OpId>& order) {
  std::vector<OpId> place(schedule.ops.size(), kNoOp);
  for (size_t i = 0; i < order.size(); i++) place[order[i]] = static_cast<OpId>(i);
  Schedule result = schedule;
  result.ops.clear();
  for (OpId op : order) {
    result.ops.push_back(schedule.ops[op]);
    std::vector<OpId> after;
    for (OpId a : schedule.ops[op].after) {
      if (place[a] != kNoOp) after.push_back(place[a]);
    }
    result.ops.back().after = after;
  }
  return result;
}

std::optional<Schedule> mutate(const Schedule& schedule, Mutation mutation, Random& random) {
  const OpId last = static_cast<OpId>(schedule.ops.size()) - 1;
  const OpId a = pick(random, 0, last), b = pick(random, 0, last);
  std::vector<OpId> order(schedule.ops.size());
  std::iota(order.begin(), order.end(), 0);
  Schedule mutant = schedule;
  switch (mutation) {
    case deletion:
      order.erase(order.begin() + a);
      return reorder(schedule, order);
    case swapped_order:
      if (a == b) return std::nullopt;
      std::swap(order[a], order[b]);
      return reorder(schedule, order);
    case swapped_places:  // each does the other's work where it stands
      if (a == b) return std::nullopt;
      std::swap(mutant.ops[a].kind, mutant.ops[b].kind);
      std::swap(mutant.ops[a].block, mutant.ops[b].block);
      std::swap(mutant.ops[a].micro, mutant.ops[b].micro);
      return mutant;
    default: {
      std::vector<OpId>& after = mutant.ops[a].after;
      if (after.empty()) return std::nullopt;
      after.erase(after.begin() + pick(random, 0, static_cast<int32_t>(after.size()) - 1));
      return mutant;
    }
  }
}

// Whether some interleaving ends in another state than the original, or never ends.
bool does_harm(const Schedule& mutant, const std::vector<FakeBlocks::Buffer>& expected, int tries,
               Random& random) {
  for (int i = 0; i < tries; i++) {
    FakeBlocks blocks(mutant);
    if (!run_interleaved(mutant, blocks, random) || blocks.state() != expected) return true;
  }
  return false;
}

TEST(Mutation, AThousandDamagedSchedulesAreCaughtOrHarmless) {
  constexpr int kMutants = 1000, kTries = 40;
  Random random(20240607);
  int caught[kMutations] = {}, caught_harmful[kMutations] = {}, harmless[kMutations] = {};
  for (int made = 0; made < kMutants;) {
    Schedule schedule = random_schedule(random);
    if (pick(random, 0, 1) == 1) spread(schedule, random);
    const auto mutation = static_cast<Mutation>(pick(random, 0, kMutations - 1));
    const std::optional<Schedule> mutant = mutate(schedule, mutation, random);
    if (!mutant) continue;
    made++;
    const std::vector<Problem> problems = check(*mutant);
    const bool harm = does_harm(*mutant, run_in_order(schedule), kTries, random);
    if (!problems.empty()) {
      caught[mutation]++;
      caught_harmful[mutation] += harm;
    } else {
      harmless[mutation]++;
      ASSERT_FALSE(harm) << "mutant " << made << " (" << kNames[mutation] << ") got past the checker";
    }
  }
  for (int m = 0; m < kMutations; m++) {
    std::printf("  %-18s %4d caught (%d of them seen to do harm), %4d harmless\n", kNames[m], caught[m],
                caught_harmful[m], harmless[m]);
    // Both the checker and the execution must have had something to tell apart.
    EXPECT_GT(caught_harmful[m], 0) << kNames[m];
  }
  std::printf("  %d mutants: %d caught, %d harmless, 0 neither\n", kMutants,
              std::accumulate(caught, caught + kMutations, 0),
              std::accumulate(harmless, harmless + kMutations, 0));
  EXPECT_EQ(harmless[deletion], 0);
  EXPECT_GT(harmless[swapped_order], 0);
  EXPECT_GT(harmless[removed_dependency], 0);
}

TEST(Mutation, EveryDependencyBetweenLanesIsNeededAndItsLossIsCaught) {
  Random random(7);
  const Schedule schedule = with_save(with_updates_aside(training_step(make_blocks(4, true), 2)));
  const auto expected = run_in_order(schedule);
  int removed = 0;
  for (size_t op = 0; op < schedule.ops.size(); op++) {
    for (size_t i = 0; i < schedule.ops[op].after.size(); i++) {
      if (schedule.ops[schedule.ops[op].after[i]].lane == schedule.ops[op].lane) continue;
      Schedule mutant = schedule;
      mutant.ops[op].after.erase(mutant.ops[op].after.begin() + static_cast<std::ptrdiff_t>(i));
      const std::string what = describe(schedule, static_cast<OpId>(op)) + " without waiting for " +
                               describe(schedule, schedule.ops[op].after[i]);
      // An update's clip is also implied by the update before it on its lane: only the first one's loss does
      // harm.
      const bool implied = schedule.ops[op].kind == OpKind::update && schedule.ops[op].block > 0 &&
                           schedule.ops[schedule.ops[op].after[i]].kind == OpKind::clip;
      EXPECT_EQ(check(mutant).empty(), implied) << what;
      EXPECT_EQ(does_harm(mutant, expected, 400, random), !implied) << what;
      removed++;
    }
  }
  EXPECT_EQ(removed, 4 * 2);  // each of four updates waits for clip and for its save
}

TEST(Mutation, EverySingleDeletionIsCaught) {
  for (bool tied : {false, true}) {
    for (const Schedule& schedule :
         {with_save(training_step(make_blocks(3, tied), 2)), evaluation_step(make_blocks(3, tied), 2)}) {
      for (size_t op = 0; op < schedule.ops.size(); op++) {
        std::vector<OpId> order(schedule.ops.size());
        std::iota(order.begin(), order.end(), 0);
        order.erase(order.begin() + static_cast<std::ptrdiff_t>(op));
        EXPECT_FALSE(check(reorder(schedule, order)).empty()) << describe(schedule, static_cast<OpId>(op));
      }
    }
  }
}

}  // namespace
}  // namespace megalith
