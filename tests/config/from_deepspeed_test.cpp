#include "config/from_deepspeed.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "config/errors.h"
#include "config/parse.h"

namespace megalith {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kWhole = R"({
 "train_batch_size": 16, "zero_optimization": {"stage": 1},
 "data_efficiency": {"enabled": true, "seed": 7,
  "data_routing": {"enabled": true, "random_ltd": {"enabled": true, "total_layer_num": 24, "random_ltd_layer_num": 2,
    "random_ltd_layer_id": [3, 1], "model_mask_name": "attention_mask", "model_type": "decoder",
    "hidden_state_order": "batch_seq_dim",
    "random_ltd_schedule": {"min_value": 128, "max_value": 256, "schedule_type": "fixed_linear",
      "schedule_config": {"require_steps": 200, "seq_per_step": 16}},
    "layer_token_lr_schedule": {"enabled": true, "total_layer_tokens": 100, "warmup_layer_tokens": 10,
      "warmup_type": "linear"}}},
  "data_sampling": {"enabled": true, "num_epochs": 1, "num_workers": 0,
   "curriculum_learning": {"enabled": true, "data_cluster_path": "/c", "curriculum_metrics": {
     "vocabularyrarity": {"index_to_sample_path": "/d/voc_index_to_sample_percentile_merged",
       "index_to_metric_path": "/d/voc_index_to_metric",
       "difficulty_type": "percentile", "clustering_type": "schedule_based", "min_difficulty": 1, "max_difficulty": 100,
       "schedule_type": "fixed_root",
       "schedule_config": {"total_curriculum_step": 110, "difficulty_step": 1, "root_degree": 2}},
     "seqlen_reshape": {"difficulty_type": "value", "clustering_type": "single_cluster", "min_difficulty": 64,
      "max_difficulty": 256, "index_to_sample_path": "dummy", "index_to_metric_path": "dummy",
       "schedule_type": "fixed_discrete", "schedule_config": {"difficulty": [64, 128, 256], "max_step": [10, 20]}}}}}}})";

constexpr std::string_view kOlder = R"({"curriculum_learning": {"enabled": true, "curriculum_type": "seqlen",
  "min_difficulty": 10, "max_difficulty": 1024, "schedule_type": "fixed_linear",
  "schedule_config": {"total_curriculum_step": 15000, "difficulty_step": 8}}})";

FromDeepSpeed translate(const Json& tree) {
  return from_deepspeed(print_json(tree), "ds.json");
}

std::string said(const Json& tree) {
  return complaint([&] { translate(tree); });
}

bool notes_say(const FromDeepSpeed& ours, const std::string& part) {
  return std::ranges::any_of(ours.notes, [&](const std::string& n) { return n.find(part) != std::string::npos; });
}

Config parse_translated(const FromDeepSpeed& ours) {
  const std::string room = "model: {arch: gpt2, layers: 24, hidden: 8, heads: 2, context: 4096}\ndata: {sequence: 4096}\n";
  return parse_config(room + ours.yaml, "run.yaml", "run");
}

const std::string kMetrics = "data_efficiency.data_sampling.curriculum_learning.curriculum_metrics";
const std::string kDropping = "data_efficiency.data_routing.random_ltd";

// Returns a ds_config with one metric. Its values go from 1 to 9 unless `settings` changes them.
Json metric(const std::string& name, const Json& settings = Json::object()) {
  Json tree = Json::parse(R"({"difficulty_type": "value", "clustering_type": "schedule_based", "min_difficulty": 1,
    "max_difficulty": 9, "schedule_type": "fixed_linear",
    "schedule_config": {"total_curriculum_step": 5, "difficulty_step": 1}})");
  tree.merge_patch(settings);
  Json root;
  root["data_efficiency"] = {{"enabled", true}};
  root["data_efficiency"]["data_sampling"] = {{"enabled", true}};
  root["data_efficiency"]["data_sampling"]["curriculum_learning"] = {{"enabled", true}};
  root["data_efficiency"]["data_sampling"]["curriculum_learning"]["curriculum_metrics"][name] = tree;
  return root;
}

// Returns kWhole with other settings of random_ltd.
Json dropping(const Json& settings) {
  Json root = Json::parse(kWhole);
  root["data_efficiency"]["data_routing"]["random_ltd"].merge_patch(settings);
  return root;
}

TEST(FromDeepSpeed, TranslatesTheWholeTreeAndSaysWhatItChanged) {
  const FromDeepSpeed ours = from_deepspeed(kWhole, "ds.json");
  EXPECT_EQ(
      ours.yaml,
      "run: {seed: 7}\n"
      "curriculum:\n"
      "  - {metric: rarity, apply: filter, unit: percentile, file: /d/voc_index_to_metric, from: 1, to: 100, step: 1, "
      "over: 110 steps, pacing: root 2}\n"
      "  - {metric: length, apply: reshape, over: steps, pacing: [[0, 64], [10, 128], [20, 256]]}\n"
      "token_dropping: {from: 128, to: 256, step: 16, over: 200 steps, layers: [1, 3]}\n"
      "train: {tokens: 5, schedule_by: layer_tokens}\n");
  for (const char* part : {"train_batch_size, zero_optimization", "data_cluster_path", "num_epochs", "model_mask_name",
                           "100 divided by 24 layers is translated to train.tokens: 5",
                           "warmup_layer_tokens: not translated", "clustering_type",
                           "vocabularyrarity.schedule_type: DeepSpeed's first step is step 1",
                           "data.sequence must be 256 or more",
                           "file: /d/voc_index_to_metric; /d/voc_index_to_sample is read as well, not "
                           "/d/voc_index_to_sample_percentile_merged"})
    EXPECT_TRUE(notes_say(ours, part)) << part;
  // A run accepts the result.
  const Config config = parse_config("model: {arch: gpt2, layers: 4, hidden: 8, heads: 2}\n" + ours.yaml, "run.yaml", "run");
  EXPECT_EQ(config.run.seed, 7u);
  ASSERT_EQ(config.curriculum.size(), 2u);
  EXPECT_EQ(config.curriculum[1].hold, Hold::tokens);
  EXPECT_EQ(config.token_dropping.layers, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(config.train.schedule_by, Counted::layer_tokens);
}

TEST(FromDeepSpeed, TakesTheOlderFormAndWhatIsOff) {
  const FromDeepSpeed older = from_deepspeed(kOlder, "ds.json");
  EXPECT_EQ(older.yaml,
            "curriculum:\n  - {metric: length, apply: truncate, from: 10, to: 1024, step: 8, over: 15000 steps}\n");
  EXPECT_TRUE(notes_say(older, "curriculum_learning.schedule_type: DeepSpeed's first step is step 1, ours is step 0"));
  EXPECT_EQ(from_deepspeed(R"({"data_efficiency": {"enabled": false}})", "ds.json").yaml, "");
}

// DeepSpeed's step n is our step n - 1. The translated table includes this, so it needs no note.
TEST(FromDeepSpeed, TablesBeginWhereTheirsDo) {
  auto of = [](const Json& difficulty, const Json& max_step) {
    const Json table = {{"difficulty", difficulty}, {"max_step", max_step}};
    return translate(metric("age", {{"schedule_type", "fixed_discrete"}, {"schedule_config", table}}));
  };
  using L = Json::array_t;
  EXPECT_NE(of(L{1, 5, 9}, L{1, 7}).yaml.find("pacing: [[0, 1], [1, 5], [7, 9]]"), std::string::npos);
  EXPECT_FALSE(notes_say(of(L{1, 5, 9}, L{1, 7}), "first step"));
  const FromDeepSpeed unused = of(L{1, 5, 9}, L{0, 7});
  EXPECT_NE(unused.yaml.find("pacing: [[0, 5], [7, 9]]"), std::string::npos);
  EXPECT_TRUE(notes_say(unused, "age.schedule_config.max_step: DeepSpeed's first step is step 1: 1 is never used"));
}

TEST(FromDeepSpeed, ClustersFilterAndASingleOneChangesTheLength) {
  auto entry = [](const std::string& name, const Json& settings) {
    const Config config = parse_translated(translate(metric(name, settings)));
    return fmt::format("{} {}", config.curriculum.at(0).metric, static_cast<int>(config.curriculum[0].apply));
  };
  const Json single = {{"clustering_type", "single_cluster"}};
  auto is = [](const std::string& name, CurriculumApply apply) {
    return fmt::format("{} {}", name, static_cast<int>(apply));
  };
  EXPECT_EQ(entry("seqlen_truncate", single), is("length", CurriculumApply::truncate));
  EXPECT_EQ(entry("seqlen_reshape", single), is("length", CurriculumApply::reshape));
  EXPECT_EQ(entry("seqlen", single), is("length", CurriculumApply::truncate));
  for (const char* name : {"seqlenvocabularyrarity", "seqlen", "seqlen_reshape", "age"})
    for (const char* type : {"schedule_based", "other"})
      EXPECT_EQ(entry(name, {{"clustering_type", type}}), is(name, CurriculumApply::filter)) << type;
  EXPECT_EQ(entry("vocabularyrarity", Json::object()), is("rarity", CurriculumApply::filter));
  // DeepSpeed requires clustering_type. Without it, we filter if the metric has files.
  EXPECT_EQ(entry("seqlen", {{"clustering_type", nullptr}}), is("length", CurriculumApply::truncate));
  EXPECT_EQ(entry("seqlen", {{"clustering_type", nullptr}, {"index_to_metric_path", "s_index_to_metric"}}),
            is("seqlen", CurriculumApply::filter));
  EXPECT_EQ(said(metric("age", single)),
            "ds.json: " + kMetrics +
                ".age.clustering_type: expected schedule_based unless the metric is seqlen_truncate or seqlen_reshape, got "
                "single_cluster; use schedule_based: what a training script does with another metric cannot be translated");
  EXPECT_EQ(said(metric("seqlen_truncate", {{"clustering_type", "single_cluster"}, {"difficulty_type", "percentile"}})),
            "ds.json: " + kMetrics +
                ".seqlen_truncate.difficulty_type: expected value (in tokens), because clustering_type is single_cluster, "
                "got percentile");
}

TEST(FromDeepSpeed, AFilterSaysWhichFileItReadsOrThatItNeedsOne) {
  const FromDeepSpeed named = translate(metric("age", {{"index_to_metric_path", "a/age_index_to_metric"},
                                                       {"index_to_sample_path", "a/age_index_to_sample"}}));
  EXPECT_EQ(parse_translated(named).curriculum.at(0).file, "a/age_index_to_metric");
  EXPECT_TRUE(notes_say(named, "age.index_to_metric_path: translated to file: a/age_index_to_metric; a/age_index_to_sample "
                               "is"));
  // For percentiles, DeepSpeed reads only the sorted samples.
  const Json merged = {{"index_to_sample_path", "a/age_index_to_sample_percentile_merged"}};
  const FromDeepSpeed samples = translate(metric("age", merged));
  EXPECT_EQ(parse_translated(samples).curriculum.at(0).file, "a/age_index_to_metric");
  EXPECT_TRUE(notes_say(translate(metric("age")), "age is not a built-in metric: add file: with one number per sample"));
  EXPECT_TRUE(notes_say(translate(metric("seqlen")), "add file:"));
  const FromDeepSpeed built_in = translate(metric("voc"));
  EXPECT_FALSE(notes_say(built_in, "add file:"));
  EXPECT_TRUE(notes_say(built_in, "whose scale may differ"));
  EXPECT_NE(said(metric("loss")).find("loss.index_to_metric_path: expected a path, got nothing"), std::string::npos);
  EXPECT_NE(said(metric("age", {{"index_to_metric_path", "ages"}})).find("a path that ends with index_to_metric, got ages"),
            std::string::npos);
}

TEST(FromDeepSpeed, RefusesByName) {
  auto text_said = [](const std::string& text) { return complaint([&] { from_deepspeed(text, "ds.json"); }); };
  const std::string head = R"({"curriculum_learning": {"enabled": true, "min_difficulty": 1, "max_difficulty": 2, )";
  EXPECT_EQ(text_said("{"), "ds.json:1: expected JSON, got something else; look for a missing or extra comma or quote");
  EXPECT_EQ(text_said("{\"a\": 1,\n\"b\": 2,\n}").find("ds.json:3: expected JSON"), 0u);
  EXPECT_EQ(text_said(" \n"), "ds.json: expected JSON, got an empty file");
  EXPECT_EQ(text_said("[1]"), "ds.json: expected an object, got a list of length 1");
  EXPECT_EQ(
      text_said(head + R"("schedule_type": "custom"}})"),
      "ds.json: curriculum_learning.schedule_type: expected fixed_linear, fixed_root or fixed_discrete, got custom; write "
      "your function's values as a table: pacing: [[0, VALUE], [BEGIN, VALUE]]");
  EXPECT_EQ(text_said(head + R"("schedule_type": "fixed_linear", "schedule_config": {"difficulty_step": "x"}}})"),
            "ds.json: curriculum_learning.schedule_config.difficulty_step: expected a whole number from 1 to 1B, got \"x\"");
}

// Schedules that our parser would refuse. Errors name DeepSpeed's keys.
TEST(FromDeepSpeed, RefusesSchedulesThatAreNone) {
  auto of_metric = [](const Json& settings) { return said(metric("age", settings)); };
  auto is = [](const std::string& key, const std::string& rest) {
    return "ds.json: " + kMetrics + ".age." + key + ": " + rest;
  };
  EXPECT_EQ(of_metric({{"schedule_config", {{"difficulty_step", 0}}}}),
            is("schedule_config.difficulty_step", "expected a number above 0, got 0"));
  EXPECT_EQ(of_metric({{"schedule_config", {{"total_curriculum_step", 0}}}}).find(is("schedule_config.total_curriculum_step",
                                                                                    "expected a whole number from 1")),
            0u);
  EXPECT_EQ(of_metric({{"min_difficulty", 10}}), is("max_difficulty", "expected at least min_difficulty (10), got 9"));
  EXPECT_EQ(of_metric({{"difficulty_type", "percentile"}, {"max_difficulty", 1000}})
                .find(is("max_difficulty", "expected 100, because difficulty_type is percentile, got 1000")),
            0u);
  EXPECT_EQ(of_metric({{"difficulty_type", "percentile"}, {"max_difficulty", 100}, {"min_difficulty", 0}}),
            is("min_difficulty", "expected a number above 0 up to 100, got 0"));
  EXPECT_EQ(of_metric({{"schedule_type", "fixed_root"}, {"schedule_config", {{"root_degree", 0}}}}),
            is("schedule_config.root_degree", "expected a number from 0.01 to 100, got 0"));

  auto of_table = [&](const Json& difficulty, const Json& max_step) {
    return of_metric({{"schedule_type", "fixed_discrete"},
                      {"schedule_config", {{"difficulty", difficulty}, {"max_step", max_step}}}});
  };
  using L = Json::array_t;
  EXPECT_EQ(of_table(L{1, 5, 3}, L{2, 4}),
            is("schedule_config.difficulty[2]", "expected at least the value before it (5), got 3"));
  EXPECT_EQ(of_table(L{1, 5, 9}, L{4, 4}),
            is("schedule_config.max_step[1]", "expected more than the value before it (4), got 4"));
  EXPECT_EQ(of_table(L{1, 5, 9}, L{2, 10.5}).find(is("schedule_config.max_step[1]", "expected a whole number from 0")), 0u);
  EXPECT_EQ(of_table(L{1}, L{2}),
            is("schedule_config.difficulty", "expected one value more than max_step (1 values), got 1"));
  const std::string last = is("max_difficulty", "expected the last value of schedule_config.difficulty (99), got 9");
  EXPECT_EQ(of_table(L{1, 99}, L{2}).find(last), 0u);

  auto of_dropping = [](const Json& settings) { return said(dropping(settings)); };
  auto at = [](const std::string& key, const std::string& rest) {
    return "ds.json: " + kDropping + "." + key + ": " + rest;
  };
  EXPECT_EQ(of_dropping({{"random_ltd_schedule", {{"min_value", 300}}}}),
            at("random_ltd_schedule.max_value", "expected at least min_value (300), got 256"));
  for (const char* key : {"require_steps", "seq_per_step"}) {
    const Json none = {{"schedule_config", {{key, 0}}}};
    const std::string refused = at(std::string("random_ltd_schedule.schedule_config.") + key, "expected a whole number");
    EXPECT_EQ(of_dropping({{"random_ltd_schedule", none}}).find(refused), 0u) << key;
  }
  EXPECT_EQ(of_dropping({{"random_ltd_layer_id", L{3, 1, 3}}}),
            at("random_ltd_layer_id", "expected each layer once, got 3 twice"));
  EXPECT_EQ(of_dropping({{"random_ltd_layer_id", L{24}}}),
            at("random_ltd_layer_id[0]", "expected a whole number from 0 to 23, got 24"));
  EXPECT_EQ(of_dropping({{"random_ltd_layer_id", L{}}}).find(at("random_ltd_layer_id", "expected at least one layer")), 0u);
}

TEST(FromDeepSpeed, WhatOurParserDoesNotTakeIsNotReturned) {
  Json::array_t difficulty{1}, max_step;  // the result is longer than a YAML file may be
  for (int i = 0; i < 100000; i++) {
    difficulty.push_back(9);
    max_step.push_back(i);
  }
  const Json table = {{"difficulty", difficulty}, {"max_step", max_step}};
  EXPECT_EQ(said(metric("age", {{"schedule_type", "fixed_discrete"}, {"schedule_config", table}}))
                .find("ds.json as translated: expected at most 1 MiB of YAML"),
            0u);
}

TEST(FromDeepSpeed, RefusesASecondMetricThatChangesTheLength) {
  Json both = Json::parse(kWhole);
  both.update(Json::parse(kOlder));
  EXPECT_EQ(said(both),
            "ds.json: curriculum_learning: expected at most one metric that changes the length of sequences, got a second "
            "one; disable one of them");
}

TEST(FromDeepSpeed, RefusesFractionsOfSteps) {
  for (const char* pointer : {"/data_efficiency/seed", "/data_efficiency/data_routing/random_ltd/total_layer_num",
                              "/data_efficiency/data_routing/random_ltd/random_ltd_schedule/schedule_config/require_steps",
                              "/data_efficiency/data_routing/random_ltd/layer_token_lr_schedule/total_layer_tokens"}) {
    Json tree = Json::parse(kWhole);
    tree[Json::json_pointer(pointer)] = 10.5;
    EXPECT_NE(said(tree).find("expected a whole number"), std::string::npos) << pointer;
  }
  const Json half = {{"total_curriculum_step", 10.5}}, whole = {{"total_curriculum_step", 5e3}};
  EXPECT_NE(said(metric("age", {{"schedule_config", half}})).find("got 10.5"), std::string::npos);
  EXPECT_EQ(said(metric("age", {{"schedule_config", whole}})), "no error");
}

TEST(FromDeepSpeed, LayerTokensAreTokensTimesLayers) {
  auto of = [](const Json& total, const Json& layers) {
    return translate(dropping({{"total_layer_num", layers}, {"layer_token_lr_schedule", {{"total_layer_tokens", total}}}}));
  };
  EXPECT_EQ(parse_translated(of(24 * 4096 * 32 * 10ll, 24)).train.steps, 10);
  const FromDeepSpeed unknown = of(100, nullptr);
  EXPECT_NE(unknown.yaml.find("train: {schedule_by: layer_tokens}"), std::string::npos);
  EXPECT_TRUE(notes_say(unknown, "layer_tokens: not translated, because total_layer_num is missing: set train.tokens to "
                                 "100"));
}

// Visits every place in a tree, including objects and lists.
void each_place(const Json& tree, const Json::json_pointer& at,
                const std::function<void(const Json::json_pointer&)>& visit) {
  visit(at);
  if (tree.is_object())
    for (const auto& [key, value] : tree.items()) each_place(value, at / key, visit);
  if (tree.is_array())
    for (size_t i = 0; i < tree.size(); i++) each_place(tree[i], at / i, visit);
}

// Returns "a.b[2]" for /a/b/2.
std::string path_of(const Json& tree, const Json::json_pointer& at) {
  if (at.empty()) return "";
  const std::string above = path_of(tree, at.parent_pointer());
  if (tree[at.parent_pointer()].is_array()) return above + "[" + at.back() + "]";
  return above.empty() ? at.back() : above + "." + at.back();
}

TEST(FromDeepSpeed, NamesUnknownKeysAtEveryLevel) {
  for (std::string_view text : {kWhole, kOlder}) {
    const Json whole = Json::parse(text);
    each_place(whole, Json::json_pointer(), [&](const Json::json_pointer& at) {
      const std::string path = path_of(whole, at);
      const bool ours = path.starts_with("data_efficiency") || path.starts_with("curriculum_learning");
      if (!ours || !whole[at].is_object() || path == kMetrics) return;
      Json changed = whole;
      changed[at]["surprise"] = 1;
      EXPECT_TRUE(notes_say(translate(changed), path + ".surprise: unknown key")) << path;
    });
  }
  // A note must stay one comment line before the YAML, even if keys contain line feeds.
  const FromDeepSpeed odd = from_deepspeed(R"({"data_efficiency": {"enabled": true, "a\nb": 1}, "c\nd": 2})", "ds.json");
  for (const std::string& note : odd.notes) EXPECT_EQ(note.find('\n'), std::string::npos) << note;
}

TEST(FromDeepSpeed, AnyValueAnywhereIsTranslatedOrRefusedByName) {
  const Json values[] = {nullptr, true, false, 0, -1, 3, 10.5, 1e300, 18446744073709551615ull,
                         "", "true", "all", "a\n\"b: [", std::string("a\0b", 3),
                         Json::array(), Json::array({1, "x"}), Json::object(), Json{{"x", 1}}};
  for (std::string_view text : {kWhole, kOlder}) {
    const Json whole = Json::parse(text);
    each_place(whole, Json::json_pointer(), [&](const Json::json_pointer& at) {
      for (const Json& value : values) {
        Json changed = whole;
        changed[at] = value;
        const std::string path = path_of(whole, at), what = path + " = " + print_json(value);
        try {
          const FromDeepSpeed ours = translate(changed);
          parse_translated(ours);
          for (const std::string& note : ours.notes) EXPECT_EQ(note.find('\n'), std::string::npos) << what;
        } catch (const UserError& error) {
          EXPECT_EQ(error.parts.where, "ds.json") << what << ": " << error.what();
          EXPECT_TRUE(!error.parts.key.empty() || path.empty()) << what << ": " << error.what();
          EXPECT_FALSE(error.parts.expected.empty() || error.parts.got.empty()) << what << ": " << error.what();
          EXPECT_EQ(error.parts.got.find("json.exception"), std::string::npos) << what;
        } catch (const std::exception& error) {
          ADD_FAILURE() << what << ": " << error.what();
        }
      }
    });
  }
}

TEST(FromDeepSpeed, RefusesOtherTypesByPath) {
  auto with = [](const char* pointer, const Json& value) {
    Json tree = Json::parse(kWhole);
    tree[Json::json_pointer(pointer)] = value;
    return said(tree);
  };
  EXPECT_EQ(with("/data_efficiency/enabled", "true"),
            "ds.json: data_efficiency.enabled: expected true or false, got \"true\"");
  EXPECT_EQ(with("/data_efficiency/data_routing/random_ltd/random_ltd_layer_id", "all"),
            "ds.json: " + kDropping + ".random_ltd_layer_id: expected a list, got \"all\"");
  EXPECT_EQ(with("/data_efficiency/data_sampling/curriculum_learning/curriculum_metrics/vocabularyrarity", 5),
            "ds.json: " + kMetrics + ".vocabularyrarity: expected an object, got 5");
  EXPECT_EQ(with("/data_efficiency/data_sampling/num_epochs", "one"),
            "ds.json: data_efficiency.data_sampling.num_epochs: expected a number, got \"one\"");
}

TEST(FromDeepSpeed, KeptTokensMayStayTheSameWhereSequencesAreLonger) {
  const Json constant = {{"random_ltd_schedule", {{"min_value", 256}, {"max_value", 256}}}};
  Json root = dropping(constant);
  root["data_efficiency"]["data_sampling"]["enabled"] = false;
  const FromDeepSpeed ours = from_deepspeed(print_json(root), "ds.json");
  EXPECT_NE(ours.yaml.find("token_dropping: {from: 256, to: 256,"), std::string::npos) << ours.yaml;
  EXPECT_TRUE(notes_say(ours, "data.sequence must be 257 or more"));
  // No token is dropped if the longest sequences of the curriculum are not longer than the kept tokens.
  const FromDeepSpeed none = from_deepspeed(print_json(dropping(constant)), "ds.json");
  EXPECT_EQ(none.yaml.find("token_dropping"), std::string::npos) << none.yaml;
  EXPECT_TRUE(notes_say(none, "it keeps at least 256 tokens and no sequence has more than 256"));
}

}  // namespace
}  // namespace megalith
