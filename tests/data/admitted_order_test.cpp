#include "data/admitted_order.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/error.h"

namespace megalith {
namespace {

// Sample i is admitted at step i / 10; 7 draws a step.
std::vector<int64_t> ten_a_step(int64_t samples) {
  std::vector<int64_t> at(static_cast<size_t>(samples));
  for (int64_t i = 0; i < samples; i++) at[static_cast<size_t>(i)] = i / 10;
  return at;
}
AdmittedOrder order_of(std::vector<int64_t> at, uint64_t seed = 1, uint64_t set = 0) {
  return AdmittedOrder(std::move(at), [](int64_t step) { return 7 * step; }, seed, set);
}

TEST(AdmittedOrder, DrawsOnlyWhatIsAdmittedAndEachOnceAnEpoch) {
  for (int64_t late : {int64_t{0}, INT64_MAX}) {
    auto at = ten_a_step(300);
    at[5] = at[77] = late == 0 ? 0 : late;
    const AdmittedOrder order = order_of(at);
    std::map<int64_t, std::set<int64_t>> epochs;
    for (int64_t step = 0; step < 300; step++) {
      auto drawn = order.draw(step);
      ASSERT_EQ(drawn.size(), 7u);
      for (auto [epoch, sample] : drawn) {
        EXPECT_LE(at[static_cast<size_t>(sample)], step);
        EXPECT_TRUE(epochs[epoch].insert(sample).second) << "sample " << sample << " twice in epoch " << epoch;
      }
    }
    // When everything has been admitted an epoch is all of it.
    EXPECT_EQ(epochs[epochs.rbegin()->first - 1].size(), late == 0 ? 300u : 298u);
  }
}

TEST(AdmittedOrder, AStepIsTheSameWhateverWasAskedForBefore) {
  const AdmittedOrder forwards = order_of(ten_a_step(300)), backwards = order_of(ten_a_step(300));
  std::vector<std::vector<EpochSample>> all;
  for (int64_t step = 0; step < 120; step++) all.push_back(forwards.draw(step));
  for (int64_t step = 119; step >= 0; step -= 7) EXPECT_EQ(backwards.draw(step), all[static_cast<size_t>(step)]) << step;
}

TEST(AdmittedOrder, GoesOnFromASavedState) {
  const AdmittedOrder whole = order_of(ten_a_step(300));
  for (int64_t stop : {0, 1, 13, 29, 30, 31, 60, 119}) {
    AdmittedOrder other = order_of(ten_a_step(300));
    other.restore(nlohmann::json::parse(whole.state(stop).dump()));
    for (int64_t step = stop; step < stop + 20; step++) EXPECT_EQ(other.draw(step), whole.draw(step)) << stop << " " << step;
    if (stop > 3) EXPECT_EQ(other.draw(stop - 3), whole.draw(stop - 3));  // before it, too
  }
  AdmittedOrder smaller = order_of(ten_a_step(20));
  EXPECT_THROW(smaller.restore(whole.state(100)), UserError);
}

// Chi-square of how often each sample comes over many seeds, in the step after its admission and long after.
TEST(AdmittedOrder, EveryAdmittedSampleIsEquallyLikely) {
  constexpr int kSamples = 40, kSeeds = 4000;
  std::vector<int64_t> at(kSamples);
  for (int i = 0; i < kSamples; i++) at[static_cast<size_t>(i)] = i < 10 ? 0 : i < 15 ? 2 : 3;
  for (int64_t step : {1, 2, 3, 9}) {
    const int admitted = step < 2 ? 10 : step < 3 ? 15 : 40;
    // Draws before have used up some of the first ten: those left are as likely as each other, so look at one seed's
    // next draw among what its epoch still has.
    std::vector<double> expected(kSamples), seen(kSamples);
    for (uint64_t seed = 0; seed < kSeeds; seed++) {
      const AdmittedOrder order(at, [](int64_t s) { return s; }, seed);
      std::set<int64_t> left;
      for (int i = 0; i < admitted; i++) left.insert(i);
      for (int64_t s = 0; s < step; s++) left.erase(order.draw(s)[0].sample);
      for (int64_t i : left) expected[static_cast<size_t>(i)] += 1.0 / static_cast<double>(left.size());
      seen[static_cast<size_t>(order.draw(step)[0].sample)]++;
    }
    double chi_square = 0;
    for (int i = 0; i < admitted; i++)
      chi_square += (seen[static_cast<size_t>(i)] - expected[static_cast<size_t>(i)]) *
                    (seen[static_cast<size_t>(i)] - expected[static_cast<size_t>(i)]) / expected[static_cast<size_t>(i)];
    EXPECT_LT(chi_square, admitted + 5 * std::sqrt(2.0 * admitted)) << "step " << step;  // mean n - 1, variance 2 n
    EXPECT_GT(chi_square, admitted - 5 * std::sqrt(2.0 * admitted)) << "step " << step;
  }
}

TEST(AdmittedOrder, SeedsAndSetsHaveOrdersOfTheirOwn) {
  EXPECT_NE(order_of(ten_a_step(300)).draw(9), order_of(ten_a_step(300), 2).draw(9));
  EXPECT_NE(order_of(ten_a_step(300)).draw(9), order_of(ten_a_step(300), 1, 1).draw(9));
}

}  // namespace
}  // namespace megalith
