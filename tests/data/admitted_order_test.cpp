#include "data/admitted_order.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>

namespace megalith {
namespace {

// Sample i is admitted at step i / 10. There are 7 draws per step.
std::vector<int64_t> ten_a_step(int64_t samples) {
  std::vector<int64_t> at(static_cast<size_t>(samples));
  for (int64_t i = 0; i < samples; i++) at[static_cast<size_t>(i)] = i / 10;
  return at;
}
AdmittedOrder order_of(std::vector<int64_t> at, uint64_t seed = 1, uint64_t set = 0) {
  return AdmittedOrder(std::move(at), [](int64_t step) { return 7 * step; }, seed, set);
}

// The samples that may be drawn, directly from the rule: all admitted samples, each once, then all again.
class Rule {
 public:
  explicit Rule(std::vector<int64_t> admitted_at) : admitted_at_(std::move(admitted_at)) {}
  void begin(int64_t step) {
    for (int64_t i = 0; i < std::ssize(admitted_at_); i++)
      if (admitted_at_[static_cast<size_t>(i)] <= step && admitted_.insert(i).second) left_.insert(i);
  }
  bool allows(EpochSample drawn) {
    if (left_.empty()) {
      left_ = admitted_;
      epoch_++;
    }
    return drawn.epoch == epoch_ && left_.erase(drawn.sample) == 1;
  }
  double passes() const {
    return static_cast<double>(epoch_) + static_cast<double>(admitted_.size() - left_.size()) / static_cast<double>(admitted_.size());
  }

 private:
  std::vector<int64_t> admitted_at_;
  std::set<int64_t> admitted_, left_;
  int64_t epoch_ = 0;
};

// Orders of all kinds: samples that are admitted one by one, in groups or never; steps without draws and with several
// epochs.
struct Given {
  std::vector<int64_t> admitted_at;
  std::vector<int64_t> draws_before;
  int64_t steps() const { return std::ssize(draws_before) - 1; }
  AdmittedOrder order() const {
    return AdmittedOrder(admitted_at, [*this](int64_t step) { return draws_before[static_cast<size_t>(step)]; }, 5);
  }
};
Given any_order(uint32_t number) {
  std::mt19937 random(number);
  auto below = [&](int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random); };
  Given given{std::vector<int64_t>(static_cast<size_t>(1 + below(60))), {0}};
  const int64_t late = 1 + below(80), most = 1 + below(90), spread = 1 + below(9);
  for (int64_t& at : given.admitted_at) at = below(5) == 0 ? INT64_MAX : below(late) / spread;
  given.admitted_at[0] = 0;
  for (int step = 0; step < 100; step++) given.draws_before.push_back(given.draws_before.back() + below(most));
  return given;
}

TEST(AdmittedOrder, DrawsWhatIsAdmittedEachOnceAnEpoch) {
  for (uint32_t number = 0; number < 60; number++) {
    const Given given = any_order(number);
    const AdmittedOrder order = given.order();
    Rule rule(given.admitted_at);
    for (int64_t step = 0; step < given.steps(); step++) {
      rule.begin(step);
      const auto drawn = order.draw(step);
      const auto at = static_cast<size_t>(step);
      ASSERT_EQ(std::ssize(drawn), given.draws_before[at + 1] - given.draws_before[at]);
      for (EpochSample sample : drawn) ASSERT_TRUE(rule.allows(sample)) << number << ": step " << step;
      ASSERT_DOUBLE_EQ(order.passes(step + 1), rule.passes()) << number << ": step " << step;
    }
  }
}

TEST(AdmittedOrder, AStepIsTheSameWhateverWasAskedForBefore) {
  for (uint32_t number = 0; number < 20; number++) {
    const Given given = any_order(number);
    const AdmittedOrder forwards = given.order(), backwards = given.order();
    std::vector<std::vector<EpochSample>> all;
    for (int64_t step = 0; step < given.steps(); step++) all.push_back(forwards.draw(step));
    for (int64_t step = given.steps() - 1; step >= 0; step--) {
      EXPECT_EQ(backwards.draw(step), all[static_cast<size_t>(step)]) << number << ": step " << step;
      const AdmittedOrder resumed = given.order();  // a new object, without earlier steps
      for (int64_t next = step; next < std::min(step + 9, given.steps()); next++)
        EXPECT_EQ(resumed.draw(next), all[static_cast<size_t>(next)]) << number << ": step " << next << " from " << step;
    }
  }
}

// Counts the calls of draws_before. A step makes only a few, whatever was admitted or drawn before. Finding any step
// makes a few for each earlier step.
TEST(AdmittedOrder, AStepCostsNoMoreTheMoreCameBefore) {
  constexpr int64_t kSteps = 3000;
  int64_t asked = 0;
  auto counted = [&asked](int64_t step) {
    asked++;
    return 7 * step;
  };
  const AdmittedOrder order(ten_a_step(10 * kSteps), counted, 1), other(ten_a_step(10 * kSteps), counted, 1);
  std::vector<EpochSample> last;
  for (int64_t step = 0; step < kSteps; step++) {
    asked = 0;
    last = order.draw(step);
    ASSERT_LE(asked, 2) << step;
  }
  asked = 0;
  EXPECT_EQ(other.draw(kSteps - 1), last);
  EXPECT_LE(asked, 3 * kSteps);
}

// Compares Pearson's statistic with a limit that it exceeds once in a million cases.
void expect_uniform(const std::map<std::vector<int64_t>, int>& seen, int64_t outcomes, const std::string& what) {
  EXPECT_EQ(std::ssize(seen), outcomes) << what;
  double all = 0, chi_square = 0;
  for (const auto& [outcome, times] : seen) all += times;
  const double expected = all / static_cast<double>(outcomes), freedom = static_cast<double>(outcomes - 1);
  for (const auto& [outcome, times] : seen) chi_square += (times - expected) * (times - expected) / expected;
  const double ninth = 2 / (9 * freedom);  // Wilson and Hilferty's approximation
  EXPECT_LT(chi_square, freedom * std::pow(1 - ninth + 4.75 * std::sqrt(ninth), 3)) << what;
}

// Three samples at first, two more after one draw. The first epoch has 3 x 4! orders, every later one 5!, all equally
// likely. The beginning of an epoch does not predict the next epoch.
TEST(AdmittedOrder, EveryOrderOfEveryEpochIsEquallyLikely) {
  constexpr int kSeeds = 24000, kEpochs = 4;
  std::vector<std::map<std::vector<int64_t>, int>> orders(kEpochs), begins(kEpochs);
  for (uint64_t seed = 0; seed < kSeeds; seed++) {
    const AdmittedOrder order({0, 0, 1, 0, 1}, [](int64_t step) { return step; }, seed);
    std::vector<int64_t> drawn;
    for (int64_t step = 0; step < 5 * kEpochs; step++) drawn.push_back(order.draw(step)[0].sample);
    for (size_t epoch = 0; epoch < kEpochs; epoch++) {
      const auto begin = drawn.begin() + static_cast<int64_t>(epoch) * 5;
      orders[epoch][{begin, begin + 5}]++;
      if (epoch > 0) begins[epoch][{*(begin - 5), *begin}]++;
    }
  }
  for (size_t epoch = 0; epoch < kEpochs; epoch++) {
    expect_uniform(orders[epoch], epoch == 0 ? 72 : 120, fmt::format("epoch {}", epoch));
    if (epoch > 0) expect_uniform(begins[epoch], epoch == 1 ? 15 : 25, fmt::format("begin of epoch {}", epoch));
  }
}

// With many samples: counts how often each comes next, after some draws and admissions.
TEST(AdmittedOrder, OldAndNewSamplesAreEquallyLikelyInEveryEpoch) {
  constexpr int kSamples = 40, kSeeds = 4000;
  std::vector<int64_t> at(kSamples);
  for (int i = 0; i < kSamples; i++) at[static_cast<size_t>(i)] = i < 10 ? 0 : i < 15 ? 2 : i < 20 ? 30 : 50;
  for (int64_t step : {2, 31, 49, 50, 120}) {  // epochs 0, 1, 2, 2 and 4
    std::vector<double> expected(kSamples), seen(kSamples);
    for (uint64_t seed = 0; seed < kSeeds; seed++) {
      const AdmittedOrder order(at, [](int64_t s) { return s; }, seed);
      const EpochSample next = order.draw(step)[0];
      std::set<int64_t> left;
      for (int i = 0; i < kSamples; i++)
        if (at[static_cast<size_t>(i)] <= step) left.insert(i);
      for (int64_t s = 0; s < step; s++)
        if (const EpochSample before = order.draw(s)[0]; before.epoch == next.epoch) left.erase(before.sample);
      for (int64_t i : left) expected[static_cast<size_t>(i)] += 1.0 / static_cast<double>(left.size());
      seen[static_cast<size_t>(next.sample)]++;
    }
    double chi_square = 0, cells = 0;
    for (size_t i = 0; i < kSamples; i++) {
      if (expected[i] == 0) continue;
      chi_square += (seen[i] - expected[i]) * (seen[i] - expected[i]) / expected[i];
      cells++;
    }
    EXPECT_LT(chi_square, cells + 5 * std::sqrt(2 * cells)) << "step " << step;  // mean n - 1, variance 2 n
    EXPECT_GT(chi_square, cells - 5 * std::sqrt(2 * cells)) << "step " << step;
  }
}

TEST(AdmittedOrder, SeedsAndSetsHaveOrdersOfTheirOwn) {
  EXPECT_NE(order_of(ten_a_step(300)).draw(9), order_of(ten_a_step(300), 2).draw(9));
  EXPECT_NE(order_of(ten_a_step(300)).draw(9), order_of(ten_a_step(300), 1, 1).draw(9));
}

}  // namespace
}  // namespace megalith
