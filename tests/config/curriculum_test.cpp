#include <gtest/gtest.h>

#include "config/errors.h"
#include "config/parse.h"
#include "config/resolved.h"

namespace megalith {
namespace {

Config parse(const std::string& rest) {
  return parse_config("model: {arch: gpt2, layers: 4, hidden: 8, heads: 2}\n" + rest, "run.yaml", "run");
}
std::string refusal(const std::string& entry) {
  return complaint([&] { parse("curriculum: [" + entry + "]"); });
}

TEST(CurriculumKeys, AreReadAndWrittenBackEqual) {
  const Config config = parse(R"(
curriculum:
  - {metric: length, apply: truncate, from: 64, to: 256, over: 20M tokens, pacing: root 2}
  - {metric: rarity, apply: filter, unit: percentile, from: 1, to: 100, step: 2, over: 5000 steps}
  - {metric: mine, file: "a b.txt", pacing: [[0, 0.5], [1k, 2]], over: steps}
token_dropping: {layers: [1, 3], from: 64, to: 256, over: 100 steps, pacing: root 3}
)");
  ASSERT_EQ(config.curriculum.size(), 3u);
  const CurriculumSettings &length = config.curriculum[0], &rarity = config.curriculum[1], &mine = config.curriculum[2];
  EXPECT_EQ(length.pacing, (PacingSettings{64, 256, 8, 20'000'000, Counted::tokens, 2, {}}));
  EXPECT_EQ(length.hold, Hold::sequences);
  EXPECT_EQ(rarity.pacing, (PacingSettings{1, 100, 2, 5000, Counted::steps, 1, {}}));
  EXPECT_EQ(rarity.unit, DifficultyUnit::percentile);
  EXPECT_EQ(mine.pacing, (PacingSettings{0.5, 2, 0, 1000, Counted::steps, 1, {{0, 0.5}, {1000, 2}}}));
  EXPECT_EQ(mine.apply, CurriculumApply::filter);
  EXPECT_EQ(config.token_dropping.layers_of(4), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(config.token_dropping.pacing, (PacingSettings{64, 256, 16, 100, Counted::steps, 3, {}}));
  EXPECT_EQ(parse_config(to_yaml(config), "again.yaml", "run"), config);
  EXPECT_EQ(parse("token_dropping: {from: 8, to: 256, over: 1 steps}").token_dropping.layers_of(4),
            (std::vector<int64_t>{1, 2}));
}

TEST(CurriculumKeys, ReshapeHoldsTokens) {
  EXPECT_EQ(parse("curriculum: [{metric: length, apply: reshape, from: 8, to: 256, over: 9 steps}]").curriculum[0].hold,
            Hold::tokens);
}

TEST(CurriculumKeys, AreRefusedByName) {
  EXPECT_EQ(refusal("{metric: length, apply: truncate, from: 300, to: 256, over: 1 steps}"),
            "run.yaml:2: curriculum[0].from: expected at most the value of `to` (256), got 300");
  EXPECT_EQ(refusal("{metric: rarity, unit: percentile, from: 1, to: 101, over: 1 steps}"),
            "run.yaml:2: curriculum[0].to: expected a percentile up to 100, got 101");
  EXPECT_EQ(refusal("{metric: length, apply: truncate, from: 8, to: 512, over: 1 steps}"),
            "run.yaml:2: curriculum[0].to: expected at most data.sequence (256), got 512");
  EXPECT_EQ(refusal("{metric: rarity, apply: truncate, from: 8, to: 16, over: 1 steps}"),
            "run.yaml:2: curriculum[0].metric: expected length, because apply is truncate, got rarity; use apply: filter");
  EXPECT_EQ(refusal("{metric: lenght, apply: truncate, from: 8, to: 16, over: 1 steps}"),
            "run.yaml:2: curriculum[0].metric: expected length, because apply is truncate, got lenght; did you mean "
            "length?");
  for (const char* entry :
       {"{from: 1, to: 2, over: 3 steps}", "{metric: a, from: 1, to: 2}", "{metric: a, from: 1, to: 2, over: 3 days}",
        "{metric: a, from: 1, to: 2, over: 3 steps, pacing: cubic}", "{metric: a, from: nan, to: 2, over: 3 steps}",
        "{metric: a, from: 1, to: 2, over: 3 steps, hold: tokens}", "{metric: a, from: 1, to: 2, over: 3 steps, typo: 1}",
        "{metric: a, pacing: [[1, 2]]}", "{metric: a, pacing: [[0, 2], [5, 1]]}", "{metric: a, from: 1, pacing: [[0, 2]]}",
        "{metric: length, apply: truncate, from: 1.5, to: 8, over: 3 steps}",
        "{metric: loss, from: 1, to: 2, over: 3 steps}",
        "{metric: length, apply: reshape, hold: sequences, from: 8, to: 16, over: 1 steps}", "length"})
    EXPECT_NE(refusal(entry).find("run.yaml:2: curriculum[0]"), std::string::npos) << entry << refusal(entry);
  EXPECT_NE(
      refusal("{metric: length, apply: truncate, from: 8, to: 9, over: 1 steps}, {metric: length, apply: truncate, from: "
              "8, to: 9, over: 1 steps}")
          .find("at most one entry"),
      std::string::npos);
}

TEST(CurriculumKeys, AreRefusedAtTheirOwnLine) {
  auto said = [](const std::string& second) {
    return complaint([&] {
      parse("curriculum:\n  - {metric: rarity, from: 1, to: 2, over: 3 steps}\n  - metric: length\n    apply: truncate\n" +
            second);
    });
  };
  EXPECT_EQ(said("    from: 300\n    to: 256\n    over: 9 steps"),
            "run.yaml:6: curriculum[1].from: expected at most the value of `to` (256), got 300");
  EXPECT_EQ(said("    from: 8\n    over: 9 steps\n    to: 512"),
            "run.yaml:8: curriculum[1].to: expected at most data.sequence (256), got 512");
  EXPECT_EQ(said("    to: 8\n    over: 9 steps").find("run.yaml:4: curriculum[1].from: expected a value, got nothing"), 0u);
  EXPECT_EQ(said("    pacing: [[0, 64], [9, 512]]\n    over: steps"),
            "run.yaml:6: curriculum[1].pacing: expected at most data.sequence (256), got 512");
}

TEST(TokenDroppingKeys, AreRefusedByName) {
  auto said = [](const std::string& keys) { return complaint([&] { parse("token_dropping: {" + keys + "}"); }); };
  EXPECT_EQ(said("from: 64, to: 512, over: 9 steps"),
            "run.yaml:2: token_dropping.to: expected at most data.sequence (256), got 512");
  EXPECT_EQ(said("from: 64, to: 32, over: 9 steps"),
            "run.yaml:2: token_dropping.to: expected at least token_dropping.from (64), got 32");
  EXPECT_EQ(said("layers: [1, 4], from: 64, to: 128, over: 9 steps"),
            "run.yaml:2: token_dropping.layers: expected layers from 0 to 3, got 4");
  EXPECT_NE(said("from: 64").find("token_dropping.from: expected 0 (the default) unless token_dropping.over is "
                                  "given"), std::string::npos);
  for (const char* over : {"over: 9", "over: 9 layers", "over: 0 steps"})
    EXPECT_NE(said(std::string("from: 64, to: 128, ") + over).find("token_dropping.over"), std::string::npos) << over;
  for (const char* layers : {"[]", "[1, 1]", "[-1]", "last"})
    EXPECT_NE(said(fmt::format("from: 64, to: 128, over: 9 steps, layers: {}", layers)).find("token_dropping.layers"),
              std::string::npos) << layers;
}

TEST(TokenDroppingKeys, TakeATable) {
  const Config config = parse("token_dropping: {over: tokens, pacing: [[0, 64], [1k, 100], [20k, 256]]}");
  EXPECT_EQ(config.token_dropping.pacing,
            (PacingSettings{64, 256, 0, 20'000, Counted::tokens, 1, {{0, 64}, {1000, 100}, {20'000, 256}}}));
  EXPECT_EQ(parse_config(to_yaml(config), "again.yaml", "run"), config);
  const Config constant = parse("token_dropping: {pacing: [[0, 64]]}");
  EXPECT_TRUE(constant.token_dropping.on());
  EXPECT_EQ(parse_config(to_yaml(constant), "again.yaml", "run"), constant);
}

TEST(TokenDroppingKeys, ATableGoesWithoutNumbers) {
  auto said = [](const std::string& keys) { return complaint([&] { parse("token_dropping: {" + keys + "}"); }); };
  EXPECT_EQ(said("over: steps, pacing: [[0, 64], [9, 512]]"),
            "run.yaml:2: token_dropping.pacing: expected at most data.sequence (256), got 512");
  EXPECT_EQ(said("over: 9 steps, pacing: [[0, 64]]"),
            "run.yaml:2: token_dropping.over: expected only the word steps or tokens, because there is a table, got 9 "
            "steps; remove the number, or token_dropping.pacing");
  EXPECT_EQ(said("over: never, pacing: [[0, 64]]").find("run.yaml:2: token_dropping.over"), 0u);
  EXPECT_EQ(said("to: 128, over: steps, pacing: [[0, 64]]"),
            "run.yaml:2: token_dropping.to: expected no such key next to a table, which contains the values, got 128; "
            "remove it");
  EXPECT_EQ(said("from: 64, to: 128, over: steps"),
            "run.yaml:2: token_dropping.over: expected a number of steps or tokens, got steps; write for example 5000 "
            "steps");
  for (const char* table : {"[[1, 64]]", "[[0, 64], [9, 32]]", "[[0, 0]]", "[[0, 1.5]]", "[[0]]", "[]", "64"})
    EXPECT_NE(said(fmt::format("over: steps, pacing: {}", table)).find("token_dropping.pacing"), std::string::npos) << table;
}

TEST(ScheduleBy, IsTokensWhereTheLengthIsGivenInTokens) {
  EXPECT_EQ(parse("train: {tokens: 1M}").train.schedule_by, Counted::tokens);
  EXPECT_EQ(parse("train: {steps: 10}").train.schedule_by, Counted::steps);
  EXPECT_EQ(parse("train: {tokens: 1M, schedule_by: layer_tokens}").train.schedule_by, Counted::layer_tokens);
}

}  // namespace
}  // namespace megalith
