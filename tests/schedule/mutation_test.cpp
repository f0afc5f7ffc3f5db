// Damages schedules at random. A damaged schedule that the checker accepts must do no harm when it is executed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <span>
#include <string>

#include "schedule/check/checker.h"
#include "schedule/fake_ranks.h"
#include "schedule/random_layouts.h"
#include "schedule/random_schedules.h"
#include "schedule/check/rank_checker.h"
#include "schedule/ops/all.h"

namespace megalith {
namespace {

enum Mutation { deletion, swapped_order, swapped_places, removed_dependency, kMutations };
constexpr const char* kNames[] = {"deletion", "swapped order", "swapped places", "removed dependency"};

// Returns the schedule with its ops in another order: position i gets op order[i]. `after` is adapted; ops that are not in
// `order` are removed from it.
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
    case swapped_places:  // each op does the work of the other one at its own position
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

// True if one of `tries` random interleavings ends in another state than the original, or never ends.
bool does_harm(std::span<const RankSchedule> ranks, const FakeState& expected, int tries, Random& random) {
  for (int i = 0; i < tries; i++)
    if (run_interleaved(ranks, random) != expected) return true;
  return false;
}

bool does_harm(const Schedule& mutant, const FakeState& expected, int tries, Random& random) {
  const RankSchedule alone{&mutant};
  return does_harm({&alone, 1}, expected, tries, random);
}

constexpr int kTries = 40;

// Number of mutants in each test. Long runs set another number.
int mutants() {
  const char* const number = std::getenv("MEGALITH_MUTANTS");
  return number ? std::atoi(number) : 1000;
}

class Tally {
 public:
  void add(Mutation mutation, bool caught, bool harm) {
    (caught ? caught_ : harmless_)[mutation]++;
    if (caught) harmful_[mutation] += harm;
  }
  // Checks that there were harmful and harmless mutants, so that the tests mean something.
  void expect_both() const {
    for (int m = 0; m < kMutations; m++) {
      std::printf("  %-18s %4d caught (%d of them seen to do harm), %4d harmless\n", kNames[m], caught_[m], harmful_[m],
                  harmless_[m]);
      EXPECT_GT(harmful_[m], 0) << kNames[m];
    }
    std::printf("  %d mutants: %d caught, %d harmless, 0 neither\n", mutants(),
                std::accumulate(caught_, caught_ + kMutations, 0), std::accumulate(harmless_, harmless_ + kMutations, 0));
    EXPECT_EQ(harmless_[deletion], 0);
    EXPECT_GT(harmless_[swapped_order], 0);
    EXPECT_GT(harmless_[removed_dependency], 0);
  }

 private:
  int caught_[kMutations] = {}, harmful_[kMutations] = {}, harmless_[kMutations] = {};
};

TEST(Mutation, DamagedSchedulesAreCaughtOrHarmless) {
  Random random(20240607);
  Tally tally;
  for (int made = 0; made < mutants();) {
    Schedule schedule = random_schedule(random);
    if (pick(random, 0, 1) == 1) spread(schedule, random);
    const auto mutation = static_cast<Mutation>(pick(random, 0, kMutations - 1));
    const std::optional<Schedule> mutant = mutate(schedule, mutation, random);
    if (!mutant) continue;
    made++;
    const bool caught = !check(*mutant).empty();
    const bool harm = does_harm(*mutant, run_in_order(schedule), kTries, random);
    ASSERT_TRUE(caught || !harm) << "mutant " << made << " (" << kNames[mutation] << ") got past the checker";
    tally.add(mutation, caught, harm);
  }
  tally.expect_both();
}

// Names the ops in which a mutant differs, for the message.
std::string difference(const Schedule& schedule, const Schedule& mutant) {
  const auto say = [](const Schedule& s, size_t op) {
    if (op >= s.ops.size()) return std::string("nothing");
    std::string text = std::string(name(s.ops[op].lane)) + ": " + describe(s, s.ops[op]) + " after";
    for (OpId after : s.ops[op].after) text += " [" + describe(s, after) + "]";
    return text;
  };
  std::string text;
  for (size_t op = 0; op < schedule.ops.size(); op++)
    if (say(schedule, op) != say(mutant, op)) text += "\n  " + say(schedule, op) + " -> " + say(mutant, op);
  return text;
}

TEST(Mutation, DamagedSchedulesOfSeveralRanksAreCaughtOrHarmless) {
  Random random(7050);
  Tally tally;
  int found_together = 0;
  for (int made = 0; made < mutants();) {
    auto blocks = random_blocks(random, 3, 6);
    if (pick(random, 0, 3) == 0)
      for (size_t b = 1; b + 1 < blocks.size(); b++) blocks[b].packs_input = true;
    const RandomLayout layout = random_layout(random, blocks);
    const int32_t count = layout.ranks(), micros = pick(random, 1, 3);
    if (count == 1 || count > 6) continue;
    std::vector<Schedule> stages;
    for (int32_t stage = 0; stage < layout.stages; stage++) stages.push_back(of_stage(blocks, micros, layout, stage));
    std::vector<RankSchedule> ranks = ranks_of(stages, layout);
    if (pick(random, 0, 1) == 1) {
      for (Schedule& stage : stages) {
        spread_work(stage, random);
        const auto problems = check(stage);
        ASSERT_TRUE(problems.empty()) << layout.name() << ": " << problems.front().reason;
      }
      if (!check_ranks(ranks).empty()) continue;  // a moved op may now wait behind an exchange and close a cycle
    }
    RankSchedule& damaged = ranks[static_cast<size_t>(pick(random, 0, count - 1))];
    const Schedule& schedule = *damaged.schedule;
    const auto mutation = static_cast<Mutation>(pick(random, 0, kMutations - 1));
    const std::optional<Schedule> mutant = mutate(schedule, mutation, random);
    if (!mutant) continue;
    made++;
    const std::optional<FakeState> expected = run_interleaved(ranks, random);
    ASSERT_TRUE(expected && !does_harm(ranks, *expected, 1, random)) << layout.name();
    damaged.schedule = &*mutant;
    const bool caught_alone = !check(*mutant).empty(), caught = caught_alone || !check_ranks(ranks).empty();
    const bool harm = does_harm(ranks, *expected, kTries, random);
    ASSERT_TRUE(caught || !harm) << "mutant " << made << " (" << kNames[mutation]
                                 << ") got past the checkers: " << layout.name() << ", rank " << &damaged - ranks.data()
                                 << difference(schedule, *mutant);
    found_together += caught && !caught_alone;
    tally.add(mutation, caught, harm);
  }
  tally.expect_both();
  std::printf("  %d of them are right alone and do not meet the other ranks\n", found_together);
  EXPECT_GT(found_together, 0);
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
      // The update before on the same lane also implies the wait for prepare_update. So removing this wait does harm only
      // for the first update.
      const bool implied = schedule.ops[op].kind == ops::optimizer_step && schedule.ops[op].block > 0 &&
                           schedule.ops[schedule.ops[op].after[i]].kind == ops::prepare_update;
      EXPECT_EQ(check(mutant).empty(), implied) << what;
      EXPECT_EQ(does_harm(mutant, expected, 400, random), !implied) << what;
      removed++;
    }
  }
  EXPECT_EQ(removed, 4 * 2);  // each of four updates waits for prepare_update and for its save
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
