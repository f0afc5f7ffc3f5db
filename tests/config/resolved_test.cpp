#include "config/resolved.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/philox.h"
#include "config/errors.h"
#include "config/options.h"

namespace megalith {
namespace {

std::string written_value(const std::string& yaml, const std::string& line) {
  return yaml.find("\n" + line + "\n") != std::string::npos ? line : yaml;
}

// Generates random valid settings. Each call of pick() takes the next random number.
class Generator {
 public:
  explicit Generator(uint64_t item) : random_(11, RandomUse::test, item) {}

  std::vector<std::string> overrides() {
    std::vector<std::string> all{one_of({"model.preset=gpt2-124m", "model.preset=llama-1b",
                                         "model={arch: llama, layers: 3, hidden: 96, heads: 6, kv_heads: 2}",
                                         "model={from: 'a folder/x'}"})};
    maybe(all, {"run.seed=9223372036854775807", "run.dir='odd # name: \"x\"'", "run.dir=\"tab\\t\""});
    maybe(all, {"data.train=[a, 'b c', \"d\\ne\", '*.txt']", "data.train=x",
                "data.train=[{path: 'a, {b}', weight: 0.1}, {path: '*.txt', weight: 3}]"});
    maybe(all, {"data.tokenizer=ünï.json", "data.tokenizer={train: bpe, vocab: 300}"});
    maybe(all, {"data.valid=[v1, v2]", "data.valid_fraction=0.3333333333333333"});
    maybe(all, {"data.separator=<|endoftext|>", "data.separator='---'", "data.separator=\"\\x7f\"",
                "data.separator_token=<|endoftext|>"});
    maybe(all, {"train={optimizer: sgd, momentum: 0.1}",
                "train={optimizer: lion, betas: [0, 0.123456789012345]}", "train={optimizer: adafactor}"});
    maybe(all, {"train.tokens=123456789", "train.steps=77"});
    maybe(all, {"train.decay=constant", "train.decay=inverse_sqrt", "train.min_lr=1e-7", "train.decay=wsd",
                "train={decay: wsd, decay_steps: 7}"});
    maybe(all,
          {fmt::format("train.lr={}", 1e-3 + random_.uniform(next_++)), "train.lr=2.2250738585072014e-308"});
    maybe(all, {"train={batch: 30, micro_batch: 15}", "train={sample_tokens: 5, sample_prompt: 'a \"b\"'}"});
    maybe(all, {"memory.ram=4GiB", "memory.ram=1000000007", "memory.ram=1536MiB",
                "memory={spill: /d, window: 4}"});
    maybe(all, {"checkpoint.every=never", "checkpoint.every=0", "checkpoint={every: 5, keep: 1}"});
    maybe(all, {"model.dropout={embedding: 0.1, attention: 0.3}", "parallel={pipeline: 2, schedule: gpipe}"});
    maybe(all, {"objective=prefix", "memory.recompute=full", "data.text_field=x.y"});
    return all;
  }

 private:
  std::string one_of(const std::vector<std::string>& choices) {
    return choices[random_.below(next_++, choices.size())];
  }
  void maybe(std::vector<std::string>& all, const std::vector<std::string>& choices) {
    if (random_.below(next_++, 2) == 0) return;
    all.push_back(one_of(choices));
  }

  Philox random_;
  uint64_t next_ = 0;
};

}  // namespace

TEST(Resolved, AnyConfigReadsBackEqual) {
  int parsed = 0;
  for (uint64_t i = 0; i < 400; i++) {
    std::vector<std::string> overrides = Generator(i).overrides();
    Config config;
    try {
      config = parse("", overrides);
    } catch (const UserError&) {
      continue;  // settings that contradict each other; the test checks that enough are valid
    }
    parsed++;
    std::string yaml = to_yaml(config);
    EXPECT_EQ(parse_config(yaml, "config.yaml", "other-name", {}), config) << yaml;
  }
  EXPECT_GT(parsed, 200);
}

TEST(Resolved, EveryOptionIsWrittenOrCarriedByAnother) {
  Config config = parse(kModel);
  Config from = parse("model: {from: f}");
  for (const Option& option : options()) {
    bool unused = option.name == "train.tokens" || option.name == "train.decay_steps" ||
                  option.name.starts_with("data.tokenizer.");
    bool fields_only = option.name.starts_with("model.experts.") ||
                       (option.section() == "model" && option.name != "model.from" && option.name != "model.preset" &&
                        option.name != "model.new_head");
    EXPECT_EQ(option.get(config).has_value(),
              !unused && option.name != "model.from" && option.name != "model.preset")
        << option.name;
    EXPECT_EQ(option.get(from).has_value(), !unused && !fields_only && option.name != "model.preset")
        << option.name;
  }
}

TEST(Resolved, IsReadable) {
  std::string yaml =
      to_yaml(parse(kModel + "memory: {ram: 4GiB}\ndata: {train: a.txt}\ntrain: {tokens: 1M}"));
  for (std::string line :
       {"  seed: 1", "  dropout:", "    residual: 0", "  train: [a.txt]", "  steps: 123", "  ram: 4GiB",
        "  micro_batch: auto", "  betas: [0.9, 0.95]", "  vocab: auto", "checkpoint:"})
    EXPECT_EQ(written_value(yaml, line), line);
}

TEST(Resolved, DifferencesSayWhatAResumedRunMayChange) {
  Config before = parse(kModel);
  EXPECT_TRUE(differences(before, before).empty());
  Config after =
      parse(kModel, {"train.steps=2000", "train.lr=1e-3", "model.layers=3", "memory.ram=4GiB", "run.seed=2"});
  std::vector<std::string> said;
  for (const Difference& d : differences(before, after))
    said.push_back(fmt::format("{} {} -> {} {}", d.key, d.before, d.after, d.may_change ? "ok" : "refused"));
  EXPECT_EQ(said,
            (std::vector<std::string>{"run.seed 1 -> 2 refused", "model.layers 2 -> 3 refused",
                                      "train.steps 1000 -> 2000 ok", "train.lr 0.0003 -> 0.001 ok",
                                      "train.min_lr 3e-05 -> 0.0001 ok", "memory.ram auto -> 4GiB ok"}));
}

TEST(Resolved, ACurriculumThatChangedIsToldKeyByKey) {
  auto curriculum = [](const std::string& entries) { return parse(kModel + "\ncurriculum: [" + entries + "]"); };
  auto said = [](const Config& before, const Config& after) {
    std::vector<std::string> all;
    for (const Difference& d : differences(before, after))
      all.push_back(fmt::format("{} {} -> {} {}", d.key, d.before, d.after, d.may_change ? "ok" : "refused"));
    return all;
  };
  const std::string length = "{metric: length, apply: truncate, from: 16, to: 32, over: 9 steps}";
  const Config before = curriculum(length + ", {metric: m, file: a.txt, from: 1, to: 2, over: 3 steps}");
  EXPECT_EQ(said(before, curriculum(length + ", {metric: m, file: b/a.txt, from: 1, to: 4, step: 1, over: 3 steps}")),
            (std::vector<std::string>{"curriculum[1].file a.txt -> b/a.txt ok", "curriculum[1].to 2 -> 4 refused",
                                      "curriculum[1].step (not set) -> 1 refused"}));
  EXPECT_EQ(said(parse(kModel), curriculum(length)),
            std::vector<std::string>{"curriculum [] -> [{metric: length, apply: truncate, hold: sequences, from: 16, to: 32, "
                                     "step: 8, over: 9 steps, pacing: linear}] refused"});
}

TEST(Resolved, WhatTheNumbersDependOnIsFixedForAResumedRun) {
  for (std::string_view fixed :
       {"model.hidden", "data.train", "data.tokenizer.path", "data.sequence", "run.seed", "train.batch",
        "train.micro_batch", "train.threads", "train.optimizer", "train.precision", "objective.kind",
        "model.dropout.residual"})
    EXPECT_FALSE(find_option(fixed)->may_change) << fixed;
  for (std::string_view free : {"train.steps", "train.lr", "train.min_lr", "train.warmup", "train.decay",
                                "train.decay_steps", "train.clip", "train.eval_every", "train.log_every", "memory.ram",
                                "memory.recompute", "checkpoint.every", "train.weight_decay", "train.betas"})
    EXPECT_TRUE(find_option(free)->may_change) << free;
}

TEST(Resolved, DropoutOfAFolderIsADecision) {
  const std::string from = "model: {from: folder}\ndata: {train: a.txt}\n";
  Config saved = parse(from);
  saved.model.shape.dropout.residual = 0.1;  // as read from the folder's config.json
  EXPECT_EQ(keep_decisions(saved, parse(from)).model.shape.dropout.residual, 0.1);
  EXPECT_EQ(keep_decisions(saved, parse(from, {"model.dropout.residual=0.2"})).model.shape.dropout.residual, 0.2);
}

TEST(Resolved, DecisionsOfTheFirstRunAreKept) {
  Config saved =
      parse(kModel, {"train.micro_batch=4", "train.threads=2", "model.vocab=4096", "memory.ram=1GiB"});
  Config now = keep_decisions(saved, parse(kModel, {"train.threads=1"}));
  EXPECT_EQ(now.train.micro_batch, 4);
  EXPECT_EQ(now.model.shape.vocab, 4096);
  EXPECT_EQ(now.train.threads, 1);          // written in the new config, so it stays and is compared later
  EXPECT_EQ(now.memory.ram, std::nullopt);  // may change on resume
  const auto keeps = [&](const char* key) { return keeps_decision(*find_option(key), saved, parse(kModel, {"train.threads=1"})); };
  EXPECT_TRUE(keeps("train.micro_batch") && keeps("model.vocab"));
  EXPECT_FALSE(keeps("train.threads") || keeps("memory.ram") || keeps("train.lr"));
}

}  // namespace megalith
