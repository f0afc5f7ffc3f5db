#include "config/from_deepspeed.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "config/errors.h"
#include "config/parse.h"

namespace megalith {
namespace {

constexpr std::string_view kWhole = R"({
 "train_batch_size": 16, "zero_optimization": {"stage": 1},
 "data_efficiency": {"enabled": true, "seed": 7,
  "data_routing": {"enabled": true, "random_ltd": {"enabled": true, "total_layer_num": 24, "random_ltd_layer_num": 2,
    "random_ltd_layer_id": [3, 1], "model_mask_name": "attention_mask", "model_type": "decoder",
    "hidden_state_order": "batch_seq_dim",
    "random_ltd_schedule": {"min_value": 128, "max_value": 256, "schedule_type": "fixed_linear",
      "schedule_config": {"require_steps": 200, "seq_per_step": 16}},
    "layer_token_lr_schedule": {"enabled": true, "total_layer_tokens": 100}}},
  "data_sampling": {"enabled": true, "num_epochs": 1, "num_workers": 0,
   "curriculum_learning": {"enabled": true, "data_cluster_path": "/c", "curriculum_metrics": {
     "vocabularyrarity": {"index_to_sample_path": "/d/voc_index_to_sample", "index_to_metric_path": "/d/voc_index_to_metric",
       "difficulty_type": "percentile", "clustering_type": "schedule_based", "min_difficulty": 1, "max_difficulty": 100,
       "schedule_type": "fixed_root",
       "schedule_config": {"total_curriculum_step": 110, "difficulty_step": 1, "root_degree": 2}},
     "seqlen_reshape": {"difficulty_type": "value", "clustering_type": "single_cluster", "min_difficulty": 64,
      "max_difficulty": 256,
       "schedule_type": "fixed_discrete", "schedule_config": {"difficulty": [64, 128, 256], "max_step": [10, 20]}}}}}}})";

TEST(FromDeepSpeed, TranslatesTheWholeTreeAndSaysWhatItChanged) {
  const FromDeepSpeed ours = from_deepspeed(kWhole, "ds.json");
  EXPECT_EQ(
      ours.yaml,
      "run: {seed: 7}\n"
      "curriculum:\n"
      "  - {metric: rarity, apply: filter, unit: percentile, file: /d/voc_sample_to_metric, from: 1, to: 100, step: 1, "
      "over: 110 steps, pacing: root 2}\n"
      "  - {metric: length, apply: reshape, over: steps, pacing: [[0, 64], [11, 128], [21, 256]]}\n"
      "token_dropping: {from: 128, to: 256, step: 16, over: 200 steps, layers: [1, 3]}\n"
      "train: {schedule_by: layer_tokens}\n");
  auto says = [&](const std::string& part) {
    return std::ranges::any_of(ours.notes, [&](const std::string& n) { return n.find(part) != std::string::npos; });
  };
  for (const char* part : {"train_batch_size, zero_optimization", "data_cluster_path", "voc_sample_to_metric", "num_epochs",
                           "model_mask_name", "total_layer_tokens", "clustering_type", "ours number 0"})
    EXPECT_TRUE(says(part)) << part;
  // It is what a run takes.
  const Config config = parse_config("model: {arch: gpt2, layers: 4, hidden: 8, heads: 2}\n" + ours.yaml, "run.yaml", "run");
  EXPECT_EQ(config.run.seed, 7u);
  ASSERT_EQ(config.curriculum.size(), 2u);
  EXPECT_EQ(config.curriculum[1].hold, Hold::tokens);
  EXPECT_EQ(config.token_dropping.layers, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(config.train.schedule_by, Counted::layer_tokens);
}

TEST(FromDeepSpeed, TakesTheOlderFormAndWhatIsOff) {
  EXPECT_EQ(from_deepspeed(R"({"curriculum_learning": {"enabled": true, "curriculum_type": "seqlen", "min_difficulty": 10,
      "max_difficulty": 1024, "schedule_type": "fixed_linear",
      "schedule_config": {"total_curriculum_step": 15000, "difficulty_step": 8}}})",
                           "ds.json")
                .yaml,
            "curriculum:\n  - {metric: length, apply: truncate, from: 10, to: 1024, step: 8, over: 15000 steps}\n");
  EXPECT_EQ(from_deepspeed(R"({"data_efficiency": {"enabled": false}})", "ds.json").yaml, "");
}

TEST(FromDeepSpeed, RefusesByName) {
  auto said = [](const std::string& text) { return complaint([&] { from_deepspeed(text, "ds.json"); }); };
  const std::string head = R"({"curriculum_learning": {"enabled": true, "min_difficulty": 1, "max_difficulty": 2, )";
  EXPECT_EQ(said("{"), "ds.json: expected JSON, got something else");
  EXPECT_EQ(
      said(head + R"("schedule_type": "custom"}})"),
      "ds.json: curriculum_learning.schedule_type: expected fixed_linear, fixed_root or fixed_discrete, got custom; write "
      "your function's values as a table: pacing: [[0, VALUE], [BEGIN, VALUE]]");
  EXPECT_EQ(said(head + R"("schedule_type": "fixed_linear", "schedule_config": {"difficulty_step": "x"}}})"),
            "ds.json: curriculum_learning.schedule_config.difficulty_step: expected a number, got \"x\"");
  EXPECT_NE(said(head + R"("schedule_type": "fixed_discrete", "schedule_config": {"difficulty": [1], "max_step": [2]}}})")
                .find("one value more"),
            std::string::npos);
  EXPECT_NE(said(R"({"data_efficiency": {"enabled": "yes"}})").find("ds.json"), std::string::npos);
}

}  // namespace
}  // namespace megalith
