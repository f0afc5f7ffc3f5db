#include "config/check.h"

#include <gtest/gtest.h>

#include "config/errors.h"

namespace megalith {

TEST(Check, ShapesThatCannotWorkNameBothFields) {
  EXPECT_EQ(mistake("model:\n  preset: gpt2-124m\n  heads: 7\n"),
            "run.yaml:3: model.heads: expected a divisor of model.hidden (768), got 7; use 3, 4, 6 or 8");
  EXPECT_EQ(mistake("model: {arch: llama, layers: 1, hidden: 64, heads: 8, kv_heads: 3}"),
            "run.yaml:1: model.kv_heads: expected a divisor of model.heads (8), got 3; use 1, 2, 4 or 8");
  EXPECT_NE(mistake("model: {arch: llama, layers: 1, hidden: 15, heads: 5}").find("15 / 5 = 3"),
            std::string::npos);
  EXPECT_NE(mistake("model: {preset: gpt2-124m, kv_heads: 4}").find("expected model.heads (12)"),
            std::string::npos);
  EXPECT_NE(mistake("model: {preset: gpt2-124m, rope_theta: 5}").find("expected model.arch llama, got model.arch gpt2"),
            std::string::npos);
  EXPECT_NE(mistake("model: {preset: gpt2-124m, token_types: 2}").find("0, because model.arch is gpt2"),
            std::string::npos);
  EXPECT_NE(mistake("objective: masked\nmodel: {preset: bert-base, token_types: 0}").find("at least 1"),
            std::string::npos);
}

TEST(Check, HeadsOfTheirOwnWidthNeedNoDivisor) {
  const std::string llama = "model: {arch: llama, layers: 1, hidden: 60, heads: 8, ";
  EXPECT_EQ(mistake(llama + "head_dim: 16}"), "no error");
  EXPECT_NE(mistake(llama + "head_dim: 15}").find("model.head_dim: expected an even number"), std::string::npos);
  EXPECT_NE(mistake(llama + "head_dim: auto}").find("a divisor of model.hidden (60)"), std::string::npos);
  EXPECT_NE(mistake("model: {preset: gpt2-124m, head_dim: 32}").find(
            "expected model.arch llama, got model.arch gpt2"), std::string::npos);
  EXPECT_NE(mistake("model: {preset: bert-base, qkv_bias: true}\nobjective: masked").find("model.qkv_bias"),
            std::string::npos);
  EXPECT_NE(mistake(llama + "head_dim: 16, qkv_bias: true, output_bias: true}").find("a divisor of model.hidden (60)"),
            std::string::npos);
  EXPECT_NE(mistake("model: {preset: llama-10m, output_bias: true}").find("unless model.qkv_bias is true"),
            std::string::npos);
}

TEST(Check, SequencesFitTheSlidingWindowOfAFolder) {
  Config config = parse("model: {preset: llama-10m}\ndata: {sequence: 128}");
  config.model.shape.window = 128;
  EXPECT_EQ(complaint([&] { check_model(config, config.model.shape); }), "no error");
  config.model.shape.window = 127;
  EXPECT_NE(complaint([&] { check_model(config, config.model.shape); }).find("sliding_window (127), got 128"), std::string::npos);
}

TEST(Check, SequencesFitTheContext) {
  EXPECT_EQ(mistake("model: {preset: gpt2-124m}\ndata:\n  sequence: 1025\n"),
            "run.yaml:3: data.sequence: expected at most model.context (1024), got 1025; shorten it, or "
            "raise model.context");
  EXPECT_EQ(mistake("model: {preset: gpt2-124m}\ndata: {sequence: 1024}"), "no error");
}

TEST(Check, ObjectivesFitTheArchitecture) {
  EXPECT_EQ(mistake("model: {preset: bert-base}\n"),
            "run.yaml (default): objective.kind: expected masked or contrastive, because model.arch is bert, got causal; "
            "set objective: masked or contrastive, or model.arch: gpt2 or llama");
  EXPECT_EQ(mistake("model: {preset: llama-10m}\nobjective: masked\n"),
            "run.yaml:2: objective.kind: expected causal, prefix, spans or contrastive, because model.arch is llama, got masked; for "
            "masked, set model.arch: bert");
  EXPECT_NE(mistake("model: {preset: bert-base}\nobjective: prefix").find("expected masked"),
            std::string::npos);
  EXPECT_EQ(mistake("model: {preset: llama-10m}\nobjective: prefix"), "no error");
}

TEST(Check, RatesStepsAndBatchesAgree) {
  EXPECT_EQ(mistake(kModel + "train: {lr: 1e-4, min_lr: 1e-3}"),
            "run.yaml:2: train.min_lr: expected at most train.lr (0.0001), got 0.001");
  EXPECT_EQ(mistake(kModel + "train: {steps: 10, warmup: 11}"),
            "run.yaml:2: train.warmup: expected at most train.steps (10), got 11");
  EXPECT_EQ(mistake(kModel + "train: {batch: 12, micro_batch: 5}"),
            "run.yaml:2: train.micro_batch: expected a divisor of train.batch (12), got 5; use 2, 3, 4 or 6");
  EXPECT_EQ(mistake(kModel + "train: {steps: 10, warmup: 4, decay: wsd, decay_steps: 7}"),
            "run.yaml:2: train.decay_steps: expected at most the 6 steps after train.warmup, got 7");
  EXPECT_EQ(mistake(kModel + "train: {steps: 10, warmup: 4, decay: wsd, decay_steps: 6}"), "no error");
  EXPECT_EQ(mistake(kModel + "train: {steps: 10, warmup: 10, batch: 12, micro_batch: 12}"), "no error");
}

TEST(Check, ATokenizerToTrainFitsTheVocabulary) {
  const std::string text =
      "model: {preset: llama-10m}\ndata: {train: a.txt, tokenizer: {train: bpe, vocab: 5000}}";
  EXPECT_EQ(complaint([&] { check_for_training(parse(text)); }),
            "data.tokenizer.vocab: expected at most model.vocab (4096), got 5000; lower it, or set "
            "model.vocab: auto");
  EXPECT_EQ(complaint([&] { check_for_training(parse(text, {"model.vocab=auto"})); }), "no error");
}

// The config.yaml of a run has the actual size of the tokenizer, and also the larger size that the user asked for.
TEST(Check, ATokenizerThatCameOutSmallerIsNoMistakeOfTheSavedConfig) {
  EXPECT_EQ(mistake(kModel, {"model.vocab=260", "data.tokenizer={train: bpe, vocab: 300}"}), "no error");
}

TEST(Check, NothingWrittenIsIgnored) {
  EXPECT_EQ(mistake(kModel + "train: {momentum: 0.8}"),
            "run.yaml:2: train.momentum: expected 0.9 (the default) unless train.optimizer is sgd, got 0.8; it is "
            "used only if train.optimizer is sgd: change that, or remove momentum");
  EXPECT_EQ(mistake(kModel + "train: {momentum: 0.8, optimizer: sgd}"), "no error");
  EXPECT_EQ(mistake(kModel + "train: {momentum: 0.9}"), "no error");  // the default value is accepted
  for (std::string text :
       {"objective.mask_fraction=0.2", "train.sample_prompt=Once", "parallel.schedule=gpipe"})
    EXPECT_NE(mistake(kModel, {text}).find(" unless "), std::string::npos) << text;
  EXPECT_NE(mistake(kModel, {"data={valid: [a], valid_fraction: 0.2}"}).find("unless data.valid is empty"),
            std::string::npos);
}

TEST(Check, TrainingNeedsData) {
  EXPECT_EQ(
      complaint([] { check_for_training(parse(kModel)); }),
      "data.train: expected a path, a list of paths, or a list of {path: PATH, weight: NUMBER}, got nothing; "
      "name the text to train on: data: {train: my.txt}");
  EXPECT_EQ(complaint([] { check_for_training(parse(kModel, {"data.train=a.txt"})); }), "no error");
}

TEST(Check, AShapeReadLaterIsCheckedAlike) {
  Config config = parse("model: {from: folder}");
  EXPECT_NE(complaint([&] { check_model(config, config.model.shape); }).find("model.layers: expected"), std::string::npos);
  config.model.shape = parse("model: {preset: gpt2-124m}").model.shape;
  EXPECT_EQ(complaint([&] { check_model(config, config.model.shape); }), "no error");
  config.objective.kind = Objective::masked;
  EXPECT_NE(complaint([&] { check_model(config, config.model.shape); }).find("causal, prefix, spans or contrastive, because model.arch is gpt2"),
            std::string::npos);
}

TEST(Check, ExpertsThatCannotBeNameTheKey) {
  const std::string llama = "model: {preset: llama-10m, experts: {";
  auto says = [&](const std::string& experts, const std::string& wanted) {
    const std::string said = mistake(llama + experts + "}}\ntrain: {batch: 8}");
    EXPECT_NE(said.find(wanted), std::string::npos) << experts << ": " << said;
  };
  says("count: 8", "no error");
  says("count: 8, router: switch, capacity: 1.25", "no error");
  says("count: 8, top_k: 9", "model.experts.top_k: expected at most model.experts.count (8), got 9");
  says("count: 8, top_k: 8, router: noisy", "model.experts.top_k: expected less than model.experts.count (8), got 8");
  says("count: 8, top_k: 2, router: switch", "1, because model.experts.router is switch, got 2");
  says("count: 8, top_k: 3, router: gshard", "2, because model.experts.router is gshard, got 3");
  says("count: 8, capacity: 0", "model.experts.capacity: expected a number above 0, or none, got 0");
  says("count: 8, capacity: -1", "model.experts.capacity");
  says("count: 8, router: expert_choice", "a token would see later tokens");
  says("count: 8, router: expert_choice, across: 4", "train.micro_batch: expected a multiple of model.experts.across (4)");
  says("count: 8, across: 3", "a divisor of train.batch (8), got 3");
  says("count: 8, across: 4, group: 16", "either model.experts.group or model.experts.across");
  says("count: 8, dense_first: 5", "model.experts.dense_first: expected at least one layer with experts among the 5 layers, "
                                   "got none");
  says("count: 8, every: 6", "model.experts.every: expected at least one layer with experts");
  says("count: 8, share_layers: true, every: 2", "false unless every layer has experts");
  says("top_k: 1", "unless model.experts.count is given");
  says("count: 8, jitter: 0.1", "unless model.experts.router is switch");
  says("count: 8, router: sigmoid, aux_loss: 0.5", "unless model.experts.router is softmax, noisy, switch or gshard");
  says("count: 8, router: softmax, bias_rate: 0.5", "unless model.experts.router is sigmoid");
  EXPECT_NE(mistake("model: {preset: gpt2-124m, experts: {count: 8}}").find(
            "expected model.arch llama, got model.arch gpt2"),
            std::string::npos);
  EXPECT_NE(mistake("model: {from: folder, experts: {count: 8}}").find("either model.from or model.experts.count"),
            std::string::npos);
  EXPECT_EQ(mistake(llama + "count: 8, router: expert_choice, across: 4}}\ntrain: {batch: 8, micro_batch: 4}"), "no error");
  auto lengths = [&](const std::string& hold) {
    return mistake(llama + "count: 8, router: expert_choice, across: 4}}\ntrain: {batch: 8, micro_batch: 4}\ncurriculum: "
                   "[{metric: length, apply: truncate, from: 16, to: 32, over: 3 steps, hold: " + hold + "}]");
  };
  EXPECT_EQ(lengths("sequences"), "no error");
  EXPECT_NE(lengths("tokens").find("expected hold: sequences, because model.experts.across is set"), std::string::npos);
}

}  // namespace megalith
