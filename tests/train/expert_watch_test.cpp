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

TEST(ExpertWatch, SaysNothingOfAModelWithoutExperts) {
  ExpertWatch watch(10);
  EXPECT_FALSE(watch.see({}));
  EXPECT_FALSE(watch.see(RoutingRecord(3)));
}

TEST(ExpertWatch, TellsTheBusiestLayerInEveryStep) {
  ExpertWatch watch(10);
  const auto m = watch.see({layer_with({10, 10, 10, 10}), {}, layer_with({25, 5, 5, 5})});
  ASSERT_TRUE(m);
  EXPECT_DOUBLE_EQ(m->load, 2.5);
  EXPECT_DOUBLE_EQ(m->entropy, 0.5);
}

TEST(ExpertWatch, TellsMeanLoadsOfALongRunInSomeHundredRecords) {
  ExpertWatch watch(600);  // every third step
  std::optional<ExpertMetrics> m;
  for (const std::vector<int64_t>& load : {std::vector<int64_t>{4, 0, 0, 0}, {0, 4, 0, 0}, {0, 0, 8, 0}}) {
    if (m) EXPECT_TRUE(m->layers.empty());
    m = watch.see({{}, layer_with(load)});
  }
  ASSERT_EQ(m->layers.size(), 1u);
  EXPECT_EQ(m->layers[0].layer, 1);
  EXPECT_EQ(m->layers[0].load, (std::vector<double>{1, 1, 2, 0}));
  EXPECT_DOUBLE_EQ(m->layers[0].entropy, 0.5);
  EXPECT_TRUE(watch.see({{}, layer_with({1, 1, 1, 1})})->layers.empty());  // begins anew
}

TEST(ExpertWatch, WarnsOnceOfAnExpertThatStarvesForLong) {
  ExpertWatch watch(1000);
  const auto said_in = [&](int64_t steps, const std::vector<int64_t>& load) {
    testing::internal::CaptureStdout();
    for (int64_t i = 0; i < steps; i++) watch.see({layer_with(load)});
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
