#include "config/parse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "base/philox.h"
#include "config/errors.h"
#include "config/known_elsewhere.h"
#include "config/options.h"
#include "config/presets.h"

namespace megalith {

TEST(Parse, TrainingDataMayHaveWeights) {
  Config c = parse(std::string(kModel) +
                   "data: {train: [{path: a.txt, weight: 0.7}, {weight: 3, path: 'b, c/*'}]}\n");
  EXPECT_EQ(c.data.train, (std::vector<std::string>{"a.txt", "b, c/*"}));
  EXPECT_EQ(c.data.weights, (std::vector<double>{0.7, 3}));
  EXPECT_TRUE(parse(kModel, {"data.train=[{path: a, weight: 1}]", "data.train=[b]"}).data.weights.empty());
  EXPECT_EQ(parse(kModel, {"data.train={path: a, weight: 2}"}).data.weights, std::vector{2.0});
  auto wrong = [](const std::string& value) { return mistake(kModel, {"data.train=" + value}); };
  const std::string lead =
      "command line: data.train: expected {path: PATH, weight: NUMBER} with a number above 0, got ";
  const std::string hint = "; give a weight to every entry or to none";
  EXPECT_EQ(wrong("[a.txt, {path: b.txt, weight: 1}]"), lead + "a.txt" + hint);
  EXPECT_EQ(wrong("[{path: b.txt}]"), lead + "an entry without a weight" + hint);
  EXPECT_EQ(wrong("[{weight: 1}]"), lead + "an entry without a path" + hint);
  EXPECT_EQ(wrong("[{path: b.txt, weight: -1}]"), lead + "weight: -1" + hint);
  EXPECT_EQ(wrong("[{path: b.txt, wait: 1}]"), lead + "wait: 1" + hint);
  EXPECT_EQ(wrong("{a: b}"), lead + "a: b" + hint);
  EXPECT_EQ(
      wrong("[{path: a, weight: 1}, {path: b, weight: 1e-9}]"),
      "command line: data.train: expected a weight of at least a millionth of the sum of all weights (1.000000001), got "
      "1e-09; remove this entry or raise its weight");
}

TEST(Parse, ReadsEveryKindOfValue) {
  Config c = parse(R"(
run: {seed: 7}
model:
  arch: llama
  layers: 2
  hidden: 64
  heads: 4
  kv_heads: 2
  vocab: 4k
  tied: true
  dropout: {residual: 0.1}
objective: prefix
data:
  train: [a.txt, "b/*.jsonl"]
  valid: c.txt
  tokenizer: tok/tokenizer.json
  sequence: 128
train:
  steps: 10k
  batch: 8
  micro_batch: 4
  optimizer: lion
  lr: 1e-3
  betas: [0.9, 0.98]
  decay: inverse_sqrt
  precision: bf16
memory: {ram: 1.5GiB, recompute: none}
checkpoint: {every: never, keep: 5}
)");
  EXPECT_EQ(c.run.seed, 7u);
  EXPECT_EQ(c.run.dir, "runs/run");
  EXPECT_EQ(c.model.shape.kv_heads, 2);
  EXPECT_EQ(c.model.shape.vocab, 4000);
  EXPECT_TRUE(c.model.shape.tied);
  EXPECT_EQ(c.model.shape.dropout, (Dropout{.embedding = 0, .residual = 0.1, .attention = 0}));
  EXPECT_EQ(c.objective.kind, Objective::prefix);
  EXPECT_EQ(c.data.train, (std::vector<std::string>{"a.txt", "b/*.jsonl"}));
  EXPECT_EQ(c.data.valid, (std::vector<std::string>{"c.txt"}));
  EXPECT_EQ(c.data.tokenizer.path, "tok/tokenizer.json");
  EXPECT_EQ(c.train.steps, 10000);
  EXPECT_EQ(c.train.micro_batch, 4);
  EXPECT_EQ(c.train.optimizer, OptimizerKind::lion);
  EXPECT_EQ(c.train.lr, 1e-3);
  EXPECT_EQ(c.train.beta2, 0.98);
  EXPECT_EQ(c.train.decay, Decay::inverse_sqrt);
  EXPECT_EQ(c.train.precision, Precision::bf16);
  EXPECT_EQ(c.memory.ram, Bytes(3ll << 29));
  EXPECT_EQ(c.memory.recompute, Recompute::none);
  EXPECT_EQ(c.checkpoint.every, -1);
  EXPECT_EQ(c.checkpoint.keep, 5);
}

TEST(Parse, LeavesWhatIsNotWrittenAtItsDefault) {
  Config c = parse(kModel), defaults;
  defaults.model = c.model;
  defaults.run.dir = "runs/run";
  EXPECT_EQ(c, defaults);
}

TEST(Parse, MasksAndTokenizersTakeAShortAndALongForm) {
  std::string bert = "model: {preset: bert-base}\n";
  EXPECT_EQ(parse(bert + "objective: masked").objective, parse(bert + "objective: {kind: masked}").objective);
  Config c = parse(bert + "objective: {kind: masked, mask_fraction: 0.2, whole_words: true}");
  EXPECT_EQ(c.objective.mask_fraction, 0.2);
  EXPECT_TRUE(c.objective.whole_words);
  EXPECT_EQ(parse(kModel + "data: {tokenizer: {train: bpe, vocab: 1000}}").data.tokenizer.train_vocab, 1000);
  EXPECT_EQ(parse(kModel + "data: {tokenizer: {train: bpe}}").data.tokenizer.train_vocab, 4096);
  EXPECT_EQ(parse(kModel + "data: {tokenizer: {path: t.json}}").data.tokenizer.path, "t.json");
}

TEST(Parse, TokensBecomeStepsRoundedUp) {
  std::string sizes = kModel + "data: {sequence: 100}\n";
  EXPECT_EQ(parse(sizes + "train: {tokens: 50M, batch: 32}").train.steps, 15625);
  EXPECT_EQ(parse(sizes + "train: {batch: 32, tokens: 3201}").train.steps, 2);
  EXPECT_EQ(parse(sizes + "train: {batch: 32, tokens: 3200}").train.steps, 1);
  EXPECT_EQ(parse(sizes + "train: {batch: 1B, tokens: 8000000000000000}", {"data.sequence=1000", "model.context=1000"})
                .train.steps,
            8000);
}

// Tokens times layers must fit into 63 bits.
TEST(Parse, RunsThatCannotBeCountedAreRefused) {
  EXPECT_NE(complaint([&] { parse(kModel + "train: {steps: 9000000000000000000}"); }).find("train.steps: expected at most"),
            std::string::npos);
  EXPECT_NE(complaint([&] { parse(kModel + "train: {batch: 1B, tokens: 9000000000000000000}"); }).find("train.steps"),
            std::string::npos);
}

TEST(Parse, TheSmallestRateFollowsTheRate) {
  EXPECT_EQ(parse(kModel + "train: {lr: 0.5}").train.min_lr, 0.05);
  EXPECT_EQ(parse(kModel + "train: {lr: 0.5, min_lr: 0}").train.min_lr, 0);
}

TEST(Parse, TheRateOfAWsdRunFallsInItsLastFifthUnlessToldOtherwise) {
  const auto steps = [](const std::string& train) {
    return parse(kModel + "train: {decay: wsd, " + train + "}").train.decay_steps;
  };
  EXPECT_EQ(steps("steps: 1000"), 200);
  EXPECT_EQ(steps("steps: 11"), 3);
  EXPECT_EQ(steps("steps: 10, warmup: 9"), 1);
  EXPECT_EQ(steps("steps: 10, warmup: 10"), 0);
  EXPECT_EQ(steps("steps: 100k, decay_steps: 3k"), 3000);
  EXPECT_EQ(steps("steps: 10, decay_steps: 0"), 0);
  EXPECT_EQ(steps("tokens: 1M, batch: 10"), parse(kModel + "train: {tokens: 1M, batch: 10}").train.steps / 5 + 1);
}

TEST(Parse, OverridesAreYamlAndReplaceTheFile) {
  Config c = parse(
      kModel + "train: {lr: 1e-2, steps: 5}\ndata: {train: old.txt, tokenizer: {train: bpe, vocab: 999}}",
      {"train.lr=1e-3", "data.train=[a.txt, 'b c.txt']", "model.dropout={residual: 0.1, attention: 0.2}",
       "train.tokens=1M", "data.tokenizer=t.json", "train={batch: 4, clip: 0}", "train.lr=2e-3"});
  EXPECT_EQ(c.train.lr, 2e-3);
  EXPECT_EQ(c.data.train, (std::vector<std::string>{"a.txt", "b c.txt"}));
  EXPECT_EQ(c.model.shape.dropout.residual, 0.1);
  EXPECT_EQ(c.model.shape.dropout.attention, 0.2);
  EXPECT_EQ(c.train.steps, 977);  // 1M / (4 x 256), rounded up: tokens replace the file's steps
  EXPECT_EQ(c.data.tokenizer, (TokenizerSettings{.path = "t.json", .train_vocab = 0}));
  EXPECT_EQ(c.train.clip, 0);
}

TEST(Parse, NullTakesAKeyBackToItsDefault) {
  EXPECT_EQ(parse(kModel + "train: {lr: 1}", {"train.lr=null"}), parse(kModel));
  EXPECT_EQ(parse(kModel + "data: {tokenizer: {train: bpe, vocab: 999}}", {"data.tokenizer=null"}),
            parse(kModel));
  EXPECT_EQ(parse(kModel + "parallel:\ntrain:\n"), parse(kModel));  // a section whose keys are commented out
}

TEST(Parse, AnEmptyOverrideIsRefused) {
  for (const std::string empty : {"", " ", "\t"})
    EXPECT_EQ(mistake(kModel, {"train.lr=" + empty}),
              "command line: train.lr: expected a value after =, got nothing; train.lr=null sets the default");
}

TEST(Parse, AllUnknownKeysAreNamedAtOnce) {
  EXPECT_EQ(mistake("model:\n  n_layer: 2\n  n_embd: 8\ntrian: {}\n", {"data.seq_len=5"}),
            "4 mistakes:\n"
            "  run.yaml:2: model.n_layer: unknown key; use model.layers\n"
            "  run.yaml:3: model.n_embd: unknown key; use model.hidden\n"
            "  run.yaml:4: trian: unknown key; did you mean train?\n"
            "  command line: data.seq_len: unknown key; use data.sequence");
  std::string text;
  for (char key = 'a'; key <= 'y'; key++) text += fmt::format("{}{}: 1\n", key, key);
  const std::string many = mistake(text);
  EXPECT_TRUE(many.starts_with("25 mistakes:\n  run.yaml:1: aa: unknown key; ")) << many;
  EXPECT_TRUE(many.ends_with("\n  and 5 more")) << many;
}

TEST(Parse, AllWrongValuesAreNamedAtOnce) {
  EXPECT_EQ(mistake("model: {arch: gpt3, layers: two}\ntrain:\n  lr: fast\n  learning_rate: 1\n", {"memory.ram=4", "run.seed"}),
            "6 mistakes:\n"
            "  command line: expected key=value, got run.seed; write run.seed=VALUE\n"
            "  run.yaml:1: model.arch: expected gpt2, llama or bert, got gpt3; did you mean gpt2?\n"
            "  run.yaml:1: model.layers: expected a whole number from 1 to 100k, got two; write a number such as 5000, 10k or "
            "50M\n"
            "  run.yaml:3: train.lr: expected a number above 0, got fast; `megalith config train.lr` explains it\n"
            "  command line: memory.ram: expected a size such as 4GiB, or auto, got 4; did you mean 4GiB?\n"
            "  run.yaml:4: train.learning_rate: unknown key; use train.lr");
  // Values that are right alone, but not together.
  EXPECT_EQ(mistake("model: {preset: gpt2-124m, heads: 7}\ntrain: {steps: 10, warmup: 11, batch: 8, micro_batch: 3}"),
            "3 mistakes:\n"
            "  run.yaml:2: train.warmup: expected at most train.steps (10), got 11\n"
            "  run.yaml:2: train.micro_batch: expected a divisor of train.batch (8), got 3; use 1, 2, 4 or 8\n"
            "  run.yaml:1: model.heads: expected a divisor of model.hidden (768), got 7; use 3, 4, 6 or 8");
  EXPECT_EQ(mistake("model: {from: folder, layers: 2, heads: 2}").substr(0, 11), "2 mistakes:");
  EXPECT_EQ(mistake("model: {arch: gpt2, layers: 2}").substr(0, 58), "2 mistakes:\n  run.yaml: model.hidden: expected a whole num");
}

TEST(Parse, KeysOfASectionWithAnotherNameAreChecked) {
  EXPECT_EQ(mistake(kModel + "training:\n  learning_rate: 1\n  lr: fast\n"),
            "3 mistakes:\n"
            "  run.yaml:4: train.lr: expected a number above 0, got fast; `megalith config train.lr` explains it\n"
            "  run.yaml:2: training: unknown key; use train\n"
            "  run.yaml:3: train.learning_rate: unknown key; use train.lr");
}

TEST(Parse, SmallSizesNeedAUnit) {
  EXPECT_NE(mistake(kModel, {"memory.ram=4096"}).find("did you mean 4096MiB?"), std::string::npos);
  EXPECT_NE(mistake(kModel, {"memory.ram=0.5"}).find("did you mean 0.5GiB?"), std::string::npos);
  EXPECT_EQ(parse(kModel, {"memory.ram=999B"}).memory.ram, Bytes(999));
  EXPECT_EQ(parse(kModel, {"memory.ram=1000000"}).memory.ram, Bytes(1000000));
}

TEST(Parse, MistakesOfSyntaxNameTheLineAndTheWayOut) {
  EXPECT_EQ(mistake("model:\n  layers 2\n  hidden: 32\n"),
            "run.yaml:2: expected a key, a colon, a space and a value, got \"layers 2\"; write layers: 2");
  EXPECT_EQ(mistake("model:\n  layers:2\n  hidden: 32\n"),
            "run.yaml:2: expected a key, a colon, a space and a value, got \"layers:2\"; write layers: 2");
  EXPECT_EQ(mistake("model\n  layers: 2\n"), "run.yaml:1: expected a key, a colon, a space and a value, got model; write model:");
  EXPECT_NE(mistake("model:\n\tlayers: 2\n").find("this line begins with a tab"), std::string::npos);
  EXPECT_EQ(mistake("model: {preset: gpt2-124m\ndata: {train: a.txt}\n"),
            "run.yaml:2: expected a closing bracket; a { or [ in this line or before it is not closed, or a comma is "
            "missing in it");
}

TEST(Parse, TakingBackAKeyLeavesItsAlternative) {
  EXPECT_EQ(parse(kModel + "train: {steps: 7}", {"train.tokens=null"}).train.steps, 7);
}

// A short, reproducible version of fuzz/config_fuzz.cpp.
TEST(Parse, MutatedTextGivesAConfigOrAUserError) {
  const std::string valid =
      "model:\n  preset: gpt2-124m\n  dropout: {residual: 0.1}\ndata:\n  train:\n    - a.txt\n    - "
      "\"b\\n\"\n"
      "  tokenizer: {train: bpe, vocab: 4k}\ntrain: {lr: 1e-3, betas: [0.9, 0.95]}\nmemory: {ram: 1.5GiB}\n";
  const std::string_view marks = " \n:-[]{},#&*!|>'\"%@`?~\t\\=\xff\x80\x01";
  Philox random(5, RandomUse::test, 0);
  uint64_t next = 0;
  int accepted = 0;
  for (int i = 0; i < 1500; i++) {
    std::string text = valid;
    for (uint64_t edits = 1 + random.below(next++, 3); edits > 0; edits--) {
      size_t at = random.below(next++, text.size());
      size_t length = random.below(next++, 20) == 0 ? 100 : 1;
      char mark = marks[random.below(next++, marks.size())];
      if (random.below(next++, 3) == 0)
        text.erase(at, length);
      else
        text.insert(at, length, mark);
    }
    accepted += mistake(text) == "no error";
  }
  EXPECT_GT(accepted, 30);  // otherwise we test only the YAML scanner
  EXPECT_LT(accepted, 1450);
}

TEST(Parse, UnknownKeysNameTheNearestKnownOne) {
  EXPECT_EQ(mistake(kModel + "train:\n  lrr: 1\n"),
            "run.yaml:3: train.lrr: unknown key; did you mean train.lr?");
  EXPECT_EQ(mistake(kModel + "trian: {lr: 1}\n"),
            "run.yaml:2: trian: unknown key; did you mean train?");
  EXPECT_EQ(mistake(kModel + "lr: 1\n"), "run.yaml:2: lr: unknown key; did you mean train.lr?");
  EXPECT_EQ(mistake(kModel, {"train.layers=3"}),
            "command line: train.layers: unknown key; did you mean model.layers or token_dropping.layers?");
  EXPECT_EQ(mistake(kModel, {"checkpoint.frequency_of_saving=3"}),
            "command line: checkpoint.frequency_of_saving: unknown key; checkpoint has every, keep; `megalith config "
            "checkpoint` explains them");
  EXPECT_EQ(mistake(kModel + "zzzzzzzzz: 1"),
            "run.yaml:2: zzzzzzzzz: unknown key; `megalith config` lists all keys");
  EXPECT_NE(mistake(kModel + "train.lr.x: 1").find("unknown key"), std::string::npos);
}

TEST(Parse, KeysOfOtherProgramsAreSuggestedByMeaning) {
  const auto advice = [](const std::string& key) {
    const std::string text = mistake(kModel, {key + "=1"});
    return text.substr(text.find(';') + 2);
  };
  EXPECT_TRUE(advice("train.epochs").starts_with("Megalith counts steps: train.steps = epochs x tokens of data.train / "));
  EXPECT_EQ(advice("train.max_steps"), "use train.steps");
  EXPECT_EQ(advice("save_every"), "use checkpoint.every");
  EXPECT_EQ(advice("train.warmup-steps"), "use train.warmup");
  EXPECT_EQ(advice("train.learningRate"), "use train.lr");
  EXPECT_EQ(advice("bs"), "use train.batch");
  EXPECT_EQ(advice("lora"), "LoRA and other adapters are not supported in this version");
  EXPECT_EQ(advice("train.gradient_accumulation_steps"),
            "no setting is needed: train.batch counts the sequences of a whole step, train.micro_batch those computed at once");
  EXPECT_NE(mistake(kModel, {"train.precision=bfloat16"}).find("did you mean bf16?"), std::string::npos);
  EXPECT_NE(mistake(kModel, {"objective.kind=mlm"}).find("did you mean masked?"), std::string::npos);
}

TEST(Parse, FarFetchedSuggestionsAreLeftOut) {
  for (const std::string key : {"foo", "train.foo", "bar", "zoo.bar"})
    EXPECT_EQ(mistake(kModel, {key + "=1"}).find("did you mean"), std::string::npos) << mistake(kModel, {key + "=1"});
  EXPECT_NE(mistake(kModel, {"train.minLR=1"}).find("did you mean train.min_lr?"), std::string::npos);
  EXPECT_NE(mistake(kModel, {"trian.warm=1"}).find("did you mean train.warmup?"), std::string::npos);
}

TEST(Parse, ValuesOfOtherProgramsAreJudgedForOurKey) {
  EXPECT_EQ(mistake(kModel + "optimizer: adamw_torch"),
            "run.yaml:2: optimizer: unknown key; did you mean train.optimizer? (its value: expected adamw, sgd, lion or "
            "adafactor, got adamw_torch; did you mean adamw?)");
  EXPECT_NE(mistake(kModel + "bf16: true").find("use train.precision (its value: expected fp32, bf16 or fp16, got true)"),
            std::string::npos);
  EXPECT_EQ(mistake(kModel + "seq_len: 9"), "run.yaml:2: seq_len: unknown key; use data.sequence");
  EXPECT_NE(mistake(kModel + "every: 5").find("did you mean model.experts.every or checkpoint.every?"), std::string::npos);
  EXPECT_NE(mistake(kModel + "experts: {count: 5}").find("did you mean model.experts?"), std::string::npos);
  EXPECT_EQ(mistake(kModel + "device: cuda"), "run.yaml:2: device: unknown key; remove it: this version computes on CPUs only");
  EXPECT_NE(mistake(kModel, {"memory.spill=true"}).find("memory.spill: expected a directory, got true"), std::string::npos);
  EXPECT_NE(mistake(kModel + "data: {path: my.txt}").find("use data.train"), std::string::npos);
  EXPECT_NE(mistake("model: {path: folder}").find("use model.from"), std::string::npos);
  EXPECT_NE(mistake("base_model: gpt2").find("use model.from; give a local folder (Megalith downloads nothing: if gpt2"),
            std::string::npos);
  EXPECT_NE(mistake(kModel + "data: {tokenizer: {train: bpe, vocab_size: 500}}").find("did you mean data.tokenizer.vocab?"),
            std::string::npos);
}

TEST(Parse, HintsShowTheFormToWrite) {
  EXPECT_NE(mistake("model = gpt2-124m\ndata = my.txt\n").find("write a colon instead of ="), std::string::npos);
  EXPECT_NE(mistake(kModel + "data: my.txt").find("write data: {train: ...}"), std::string::npos);
  EXPECT_NE(mistake(kModel + "data: {tokenizer: bpe}").find("write tokenizer: {train: bpe, vocab: 4096}"), std::string::npos);
  EXPECT_NE(mistake(kModel + "curriculum: {metric: length}").find("put the entries in brackets"), std::string::npos);
  EXPECT_NE(mistake(kModel + "train: {lr: 0,001}").find("write decimals with a point"), std::string::npos);
  EXPECT_NE(mistake(kModel + "train:\n- lr: 1\n").find("remove the dashes before its keys"), std::string::npos);
  EXPECT_NE(mistake(kModel + "Train: {lr: 1}").find("Train: unknown key; did you mean train?"), std::string::npos);
  EXPECT_NE(mistake(kModel + "optimizer: {lr: 1}").find("(write train: {optimizer: ...} with the other entries beside it)"),
            std::string::npos);
  EXPECT_NE(mistake("[model]\npreset: gpt2-124m\n").find("a section is written as model:, not as [model]"), std::string::npos);
  EXPECT_NE(mistake(kModel + "token_dropping: {from: 8, over: 100}").find("did you mean 100 steps?"), std::string::npos);
  EXPECT_NE(mistake("model: {arch: GPT-2}").find("did you mean gpt2?"), std::string::npos);
}

TEST(Parse, EpochsBecomeSteps) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "epochs.txt";
  std::ofstream(file) << std::string(40000, 'a');
  const std::string text = kModel + "train: {batch: 5, epochs: 3}\ndata: {sequence: 100, train: " + file.string() + "}";
  const std::string said = mistake(text);
  EXPECT_TRUE(said.ends_with(" (here about 3 x 10.0k / (5 x 100), so set train.steps to 60)")) << said;
  std::filesystem::remove(file);
  EXPECT_EQ(mistake(text).find("here"), std::string::npos);
}

TEST(Parse, SuggestionsForOtherProgramsNameWhatExists) {
  std::set<std::string> theirs;
  for (const KnownKey& key : known_keys()) {
    std::stringstream words{std::string(key.theirs)};
    for (std::string word; words >> word;) {
      EXPECT_TRUE(theirs.insert(word).second) << word;
      EXPECT_EQ(plain_word(word), word);
    }
    if (key.ours.empty()) EXPECT_FALSE(key.advice.empty()) << key.theirs;
    else EXPECT_TRUE(find_option(key.ours) || is_section(key.ours)) << key.ours;
  }
  for (const KnownWord& word : known_words()) {
    const Option* option = find_option(word.option);
    ASSERT_TRUE(option) << word.option;
    Config config;
    const Yaml ours = parse_yaml(word.ours, "", false);
    EXPECT_NO_THROW(set_option(*option, config, ours)) << word.option << " " << word.ours;
    if (word.option == "model.preset") { EXPECT_NO_THROW(find_preset(word.ours)); }
    std::stringstream words{std::string(word.theirs)};
    for (std::string each; words >> each;)
      EXPECT_EQ(std::ranges::count(option->all_words(), each), 0) << word.option << " " << each;
  }
}

TEST(Parse, RepeatedKeysAreErrorsAlsoInTwoSpellings) {
  EXPECT_EQ(mistake(kModel + "train: {lr: 1}\ntrain.lr: 2\n"),
            "run.yaml:3: train.lr: expected each key once, got a second value; remove one; the first is at run.yaml:2");
  EXPECT_NE(mistake(kModel + "train: {lr: 1, lr: 2}").find("each key once"), std::string::npos);
}

TEST(Parse, WrongValuesSayWhatWasExpectedAndWhatWasThere) {
  auto wrong = [](const std::string& text) { return mistake(kModel, {text}); };
  EXPECT_EQ(wrong("train.lr=-1"), "command line: train.lr: expected a number above 0, got -1");
  EXPECT_EQ(wrong("train.lr=nan"), "command line: train.lr: expected a number above 0, got nan; `megalith config train.lr` explains it");
  EXPECT_EQ(wrong("train.lr=[1]"), "command line: train.lr: expected a number above 0, got [1]; `megalith config train.lr` explains it");
  EXPECT_EQ(wrong("train.steps=many"),
            "command line: train.steps: expected a whole number of steps from 1, got many; write a number such as 5000, 10k "
            "or 50M");
  EXPECT_EQ(
      wrong("train.optimizer=adam"),
      "command line: train.optimizer: expected adamw, sgd, lion or adafactor, got adam; did you mean adamw?");
  EXPECT_EQ(wrong("model.tied=yes"), "command line: model.tied: expected true or false, got yes; did you mean true?");
  EXPECT_EQ(wrong("memory.ram=lots"),
            "command line: memory.ram: expected a size such as 4GiB, or auto, got lots; write a size such as 512MiB or "
            "4GiB");
  EXPECT_EQ(wrong("train.micro_batch=0"),
            "command line: train.micro_batch: expected a whole number of sequences from 1 to 1B, or auto, "
            "got 0");
  EXPECT_EQ(
      wrong("train.betas=0.9"),
      "command line: train.betas: expected two numbers from 0, below 1, got 0.9; write it as [0.9, 0.95]");
  EXPECT_EQ(
      wrong("train=5"),
      "command line: train: expected a mapping of keys to values, got 5; write train: {batch: ...}; train has batch, "
            "micro_batch, steps, tokens, schedule_by, ...; `megalith config train` lists all");
  EXPECT_EQ(wrong("data.train=[a, [b]]"),
            "command line: data.train: expected a path, a list of paths, or a list of {path: PATH, weight: "
            "NUMBER}, got [a, [b]]");
  for (std::string text : {"model.dropout.residual=1", "data.valid_fraction=1", "train.momentum=1",
                           "checkpoint.keep=0", "model.layers=0", "parallel.zero=4", "run.seed=-1",
                           "train.batch=2000000000", "train.steps=1.5", "run.dir=\"a\\0b\""})
    EXPECT_NE(wrong(text).find("expected a "), std::string::npos) << text << ": " << wrong(text);
}

TEST(Parse, AnOverrideThatIsNotYamlNamesItsKey) {
  for (const std::string value : {"`id`", "[1", "!!binary aGk=", "&a 1", "%", "[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]", "\x04"}) {
    std::vector<std::string> overrides{"train.lr=" + value};
    std::string said = complaint([&] { parse_config("model: {preset: gpt2-124m}\n", "f.yaml", "f", overrides); });
    EXPECT_TRUE(said.starts_with("command line: train.lr: expected ")) << said;
  }
  std::vector<std::string> twice{"train={steps: 1, steps: 2}"};
  EXPECT_TRUE(complaint([&] { parse_config("", "f.yaml", "f", twice); }).starts_with("command line: train.steps: expected each key once"));
}

TEST(Parse, OverridesThatAreNotKeyAndValueAreRefused) {
  EXPECT_EQ(mistake(kModel, {"train.lr"}),
            "command line: expected key=value, got train.lr; write train.lr=VALUE");
  EXPECT_EQ(mistake(kModel, {"train.steps", "=", "10"}),
            "command line: expected key=value without spaces, got train.steps = 10; write train.steps=10");
  for (const std::vector<std::string>& spaced : {std::vector<std::string>{"train.steps=", "10"}, {"train.steps", "=10"}})
    EXPECT_NE(mistake(kModel, spaced).find("write train.steps=10"), std::string::npos);
  EXPECT_NE(mistake(kModel, {"train.steps:10"}).find("write train.steps=10"), std::string::npos);
  EXPECT_NE(mistake(kModel, {"train.lr=1,train.steps=5"}).find("separate settings by a space: train.lr=1 train.steps=5"),
            std::string::npos);
  EXPECT_EQ(mistake(kModel, {"data.train=[a.txt,", "b.txt]", "train.lr=1"}),
            "command line: expected a list or mapping in quotes, got data.train=[a.txt, b.txt]; write 'data.train=[a.txt, b.txt]'");
  EXPECT_NE(mistake(kModel, {"other.yaml"}).find("a run has one settings file"), std::string::npos);
  EXPECT_EQ(mistake(kModel, {"=3"}).substr(0, 32), "command line: expected key=value");
  EXPECT_EQ(mistake(kModel, {"data.train=[a"}).substr(0, 52), "command line: data.train: expected a closing bracket");
}

TEST(Parse, KeysThatExcludeEachOtherAreNamedBoth) {
  EXPECT_EQ(mistake(kModel + "train:\n  steps: 5\n  tokens: 1M\n"),
            "run.yaml:4: train.tokens: expected either train.steps or train.tokens, got both; remove one");
  EXPECT_NE(mistake(kModel + "data: {tokenizer: {path: a, train: bpe}}")
                .find("either data.tokenizer.path or data.tokenizer.train, got both"),
            std::string::npos);
  EXPECT_NE(mistake(kModel + "data: {tokenizer: {vocab: 500}}").find("expected data.tokenizer.train next to it"),
            std::string::npos);
  EXPECT_EQ(mistake("model: {from: folder, preset: gpt2-124m}"),
            "run.yaml:1: model.preset: expected either model.from or model.preset, got both; remove one");
  EXPECT_NE(mistake("model: {from: folder, layers: 3}").find("either model.from or model.layers, got both"),
            std::string::npos);
  EXPECT_EQ(
      mistake("model:\n  preset: gpt2-124m\n  arch: llama\n"),
      "run.yaml:3: model.arch: expected gpt2, the architecture of model.preset gpt2-124m, got llama; remove model.arch or "
      "model.preset");
  EXPECT_NE(
      mistake(kModel + "train: {decay: constant, min_lr: 1e-5}").find("expected train.decay cosine, linear or wsd, got"),
      std::string::npos);
  EXPECT_EQ(mistake(kModel + "train: {decay_steps: 5}"),
            "run.yaml:2: train.decay_steps: expected train.decay wsd, got train.decay cosine; remove it, or change "
            "train.decay");
}

TEST(Parse, MistakesNameTheSourceOfTheValue) {
  const std::string small = "model: {arch: gpt2, layers: 1, hidden: 32, heads: 2, context: 64}\n";
  const std::string hint = "; shorten it, or raise model.context";
  EXPECT_EQ(mistake(small), "run.yaml (default): data.sequence: expected at most model.context (64), got 256" + hint);
  EXPECT_EQ(mistake(small + "data:\n  sequence: 65"),
            "run.yaml:3: data.sequence: expected at most model.context (64), got 65" + hint);
  EXPECT_EQ(mistake(small + "data:\n  sequence: 65", {"data.sequence=66"}),
            "command line: data.sequence: expected at most model.context (64), got 66" + hint);
  EXPECT_EQ(mistake(small + "data:\n  sequence: 65", {"data.sequence=null"}),
            "run.yaml (default): data.sequence: expected at most model.context (64), got 256" + hint);
  EXPECT_EQ(mistake("data: {sequence: 8}\nmodel:\n  preset: gpt2-124m\n  hidden: 100\n"),
            "run.yaml:3 (preset gpt2-124m): model.heads: expected a divisor of model.hidden (100), got 12; use 4, 5, 10 or 20");
  EXPECT_EQ(mistake("model: {preset: gpt2-124m}", {"model.preset=llama-10m", "model.heads=7"}).substr(0, 26),
            "command line: model.heads:");
}

TEST(Parse, TheSourceOfAValueCanBeAskedForLater) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "source-of.yaml";
  std::ofstream(file) << "model:\n  from: folder\ntrain:\n  batch: 4\n  optimizer: lion\n";
  const std::vector<std::string> overrides{"parallel.tensor=2", "train.optimizer=sgd"};
  const auto source = [&](std::string_view key) { return source_of(key, file, overrides); };
  const std::string name = file.string();
  EXPECT_EQ(source("train.batch"), name + ":4");
  EXPECT_EQ(source("train.optimizer"), "command line");
  EXPECT_EQ(source("train.optimizer_state"), name + " (default)");  // train.optimizer is another key
  EXPECT_EQ(source("parallel"), "command line");
  EXPECT_EQ(source("train"), "command line");
  EXPECT_EQ(source("model"), name + ":2");
  EXPECT_EQ(source("model.layers"), name + ":2 (config.json of folder)");
  EXPECT_EQ(source("data.train"), name);  // no value
  std::filesystem::remove(file);
}

TEST(Parse, ANewHeadBelongsToAFolder) {
  EXPECT_TRUE(parse("model: {from: folder, new_head: true}").model.new_head);
  EXPECT_EQ(mistake(kModel, {"model.new_head=true"}),
            "command line: model.new_head: expected false (the default) unless model.from is set, got true; it is used only "
            "if model.from is set: change that, or remove new_head");
}

TEST(Parse, AFolderDecidesTheShapeButNotTheDropout) {
  Config c = parse("model: {from: some/folder, dropout: {residual: 0.1}}\nobjective: masked");
  EXPECT_EQ(c.model.from, "some/folder");
  EXPECT_EQ(c.model.shape.layers, 0);
  EXPECT_EQ(c.model.shape.dropout.residual, 0.1);
}

TEST(Parse, AModelIsNeeded) {
  EXPECT_EQ(mistake("train: {lr: 1}").substr(0, 90),
            "run.yaml: model: expected model.preset, model.arch with its sizes, or model.from, got none");
  EXPECT_NE(mistake("").find("run.yaml: model: expected"), std::string::npos);
  EXPECT_NE(mistake("just text").find("expected a mapping"), std::string::npos);
  EXPECT_EQ(mistake("model: {arch: gpt2, hidden: 64, heads: 4}"),
            "run.yaml: model.layers: expected a whole number from 1 to 100k, got nothing; set it, or choose a model.preset");
}

TEST(Parse, AFileGivesTheRunItsName) {
  std::string folder = testing::TempDir() + "/megalith_config_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::filesystem::path file = std::filesystem::path(folder) / "my-run.yaml";
  std::ofstream(file) << kModel;
  std::vector<std::string> overrides{"train.steps=3"};
  Config c = load_config(file, overrides);
  EXPECT_EQ(c.run.dir, "runs/my-run");
  EXPECT_EQ(c.train.steps, 3);
  std::ofstream(file) << "model:\n  preset: gpt2\n";
  EXPECT_EQ(complaint([&] { load_config(file); }).find(file.string() + ":2: model.preset"), 0u);
  const std::filesystem::path text = std::filesystem::path(folder) / "my.txt", shape = std::filesystem::path(folder) / "config.json";
  std::ofstream(text) << "Some text: with a colon\n";
  std::ofstream(shape) << "{\"model_type\": \"gpt2\"}";
  EXPECT_NE(complaint([&] { load_config(text); }).find("got text; write its name in data.train: megalith train RUN.yaml"), std::string::npos);
  EXPECT_NE(complaint([&] { load_config(shape); }).find("got the shape of a model; write its folder in model.from"), std::string::npos);
  std::filesystem::remove_all(folder);
  EXPECT_NE(complaint([&] { load_config(file); }).find("No such file"), std::string::npos);
}

}  // namespace megalith
