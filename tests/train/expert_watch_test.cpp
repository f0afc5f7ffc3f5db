#include "train/expert_watch.h"

#include <gtest/gtest.h>

#include <string>

namespace megalith {
namespace {

LayerRouting layer_with(std::vector<int64_t> load) {
  LayerRouting layer;
  for (int64_t one : load) layer.choices += one;
  layer.tokens = layer.choices / 2;
  layer.entropy = 0.5 * static_cast<double>(layer.tokens);
  layer.load = std::move(load);
  return layer;
}

StepMetrics seen(ExpertWatch& watch, const RoutingRecord& record) {
  StepMetrics metrics;
  watch.see(record, metrics);
  return metrics;
}

TEST(ExpertWatch, SaysNothingOfAModelWithoutExperts) {
  ExpertWatch watch(10);
  EXPECT_FALSE(seen(watch, {})[MetricId::expert_load]);
  EXPECT_FALSE(seen(watch, RoutingRecord(3))[MetricId::expert_load]);
}

TEST(ExpertWatch, TellsTheBusiestLayerInEveryStep) {
  ExpertWatch watch(10);
  const StepMetrics m = seen(watch, {layer_with({10, 10, 10, 10}), {}, layer_with({25, 5, 5, 5})});
  EXPECT_DOUBLE_EQ(m.get(MetricId::expert_load), 2.5);
  EXPECT_DOUBLE_EQ(m.get(MetricId::expert_entropy), 0.5);
}

TEST(ExpertWatch, TellsMeanLoadsOfALongRunInSomeHundredRecords) {
  ExpertWatch watch(600);  // every third step
  StepMetrics m;
  for (const std::vector<int64_t>& load : {std::vector<int64_t>{4, 0, 0, 0}, {0, 4, 0, 0}, {0, 0, 8, 0}}) {
    EXPECT_TRUE(m.expert_layers.empty());
    m = seen(watch, {{}, layer_with(load)});
  }
  ASSERT_EQ(m.expert_layers.size(), 1u);
  EXPECT_EQ(m.expert_layers[0].layer, 1);
  EXPECT_EQ(m.expert_layers[0].load, (std::vector<double>{1, 1, 2, 0}));
  EXPECT_DOUBLE_EQ(m.expert_layers[0].entropy, 0.5);
  EXPECT_TRUE(seen(watch, {{}, layer_with({1, 1, 1, 1})}).expert_layers.empty());  // a new period begins
}

TEST(ExpertWatch, WarnsOnceOfAnExpertThatStarvesForLong) {
  ExpertWatch watch(1000);
  const auto said_in = [&](int64_t steps, const std::vector<int64_t>& load) {
    testing::internal::CaptureStdout();
    for (int64_t i = 0; i < steps; i++) seen(watch, {layer_with(load)});
    return testing::internal::GetCapturedStdout();
  };
  EXPECT_EQ(said_in(ExpertWatch::kLong - 1, {40, 40, 40, 1}), "");
  EXPECT_EQ(said_in(1, {40, 40, 40, 40}), "");  // it came back
  EXPECT_EQ(said_in(ExpertWatch::kLong - 1, {40, 40, 40, 1}), "");
  const std::string said = said_in(1, {40, 40, 40, 1});
  EXPECT_NE(said.find("layer 0: expert 3"), std::string::npos) << said;
  EXPECT_EQ(said_in(3 * ExpertWatch::kLong, {40, 40, 40, 1}), "");
}

}  // namespace
}  // namespace megalith
