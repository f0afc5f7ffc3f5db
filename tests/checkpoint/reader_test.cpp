#include "checkpoint/reader.h"

#include <gtest/gtest.h>

#include "checkpoint/support.h"
#include "checkpoint/weight_names.h"
#include "families/registry.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
using test::TempDir;
using test::user_error;

struct Stored {
  std::string name;
  std::vector<int64_t> shape;
  float base = 0;  // values count up from here
};

std::vector<TensorSpec> specs(const std::vector<Stored>& tensors) {
  std::vector<TensorSpec> result;
  for (const Stored& t : tensors) result.push_back({t.name, DType::f32, t.shape});
  return result;
}

void write_folder(const fs::path& dir, const std::vector<Stored>& tensors, int64_t shard_limit = 1 << 20) {
  std::vector<FileSpec> files = plan_files(specs(tensors), shard_limit);
  CheckpointWriter writer(dir, files, index_file(files));
  size_t i = 0;
  for (const FileSpec& file : files)
    for (const TensorSpec& spec : file.tensors)
      writer.write(file.file, spec.name, 0, test::bytes_of(test::ramp(spec.elements(), tensors[i++].base)));
  writer.commit(nullptr);
}

WeightSource matched(const fs::path& dir, const std::vector<Stored>& expected) {
  WeightSource source = WeightSource::open_model(dir);
  source.check_matches(specs(expected));
  return source;
}

float first(const WeightSource& source, const std::string& name) {
  float value = 0;
  source.read_f32(name, 0, std::span(&value, 1));
  return value;
}

TEST(Weights, Gpt2WithoutItsPrefixAndWithBuffersIsRead) {
  TempDir temp;
  write_folder(temp / "m", {{"wte.weight", {4, 2}, 1},
                            {"h.0.attn.bias", {1, 1, 3, 3}, 2},
                            {"h.0.attn.masked_bias", {}, 3},
                            {"h.0.attn.c_attn.bias", {6}, 4}});
  WeightSource source =
      matched(temp / "m", {{"transformer.wte.weight", {4, 2}}, {"transformer.h.0.attn.c_attn.bias", {6}}});
  EXPECT_EQ(first(source, "transformer.wte.weight"), 1);
  EXPECT_EQ(first(source, "transformer.h.0.attn.c_attn.bias"), 4);
  EXPECT_TRUE(source.has("transformer.wte.weight"));
}

TEST(Weights, OldBertIsRead) {
  TempDir temp;
  write_folder(temp / "m", {{"bert.embeddings.word_embeddings.weight", {5, 2}, 1},
                            {"bert.embeddings.position_ids", {1, 4}},
                            {"bert.embeddings.LayerNorm.gamma", {2}, 10},
                            {"bert.embeddings.LayerNorm.beta", {2}, 20},
                            {"bert.pooler.dense.weight", {2, 2}},
                            {"cls.predictions.bias", {5}, 3},
                            {"cls.predictions.decoder.weight", {5, 2}, 1},
                            {"cls.predictions.decoder.bias", {5}, 3},
                            {"cls.seq_relationship.weight", {2, 2}}});
  WeightSource source = matched(temp / "m", {{"bert.embeddings.word_embeddings.weight", {5, 2}},
                                             {"bert.embeddings.LayerNorm.weight", {2}},
                                             {"bert.embeddings.LayerNorm.bias", {2}},
                                             {"cls.predictions.bias", {5}}});
  EXPECT_EQ(first(source, "bert.embeddings.LayerNorm.weight"), 10);
  EXPECT_EQ(first(source, "bert.embeddings.LayerNorm.bias"), 20);
}

TEST(Weights, ATiedHeadMayStandBesideItsTableOnlyWithTheSameValues) {
  TempDir temp;
  std::vector<Stored> tied{{"model.embed_tokens.weight", {3, 2}}};
  write_folder(temp / "same", {{"model.embed_tokens.weight", {3, 2}, 1}, {"lm_head.weight", {3, 2}, 1}});
  EXPECT_NO_THROW(matched(temp / "same", tied));
  write_folder(temp / "other", {{"model.embed_tokens.weight", {3, 2}, 1}, {"lm_head.weight", {3, 2}, 2}});
  EXPECT_CONTAINS(user_error([&] { matched(temp / "other", tied); }),
                  "lm_head.weight (differs from model.embed_tokens.weight, but config.json ties them)");
  write_folder(temp / "instead", {{"lm_head.weight", {3, 2}, 5}});
  EXPECT_EQ(first(matched(temp / "instead", tied), "model.embed_tokens.weight"), 5);
}

TEST(Weights, AnUntiedHeadIsItsOwnTensor) {
  TempDir temp;
  std::vector<Stored> untied{{"model.embed_tokens.weight", {3, 2}, 1}, {"lm_head.weight", {3, 2}, 2}};
  write_folder(temp / "m", untied);
  EXPECT_EQ(first(matched(temp / "m", untied), "lm_head.weight"), 2);
  write_folder(temp / "tied", {{"model.embed_tokens.weight", {3, 2}, 1}});
  EXPECT_CONTAINS(user_error([&] { matched(temp / "tied", untied); }), "no tensor named lm_head.weight");
  // An untied BERT computes with decoder.bias. The other bias is not used.
  write_folder(temp / "bert", {{"cls.predictions.bias", {3}, 0}, {"cls.predictions.decoder.bias", {3}, 9}});
  EXPECT_EQ(
      first(matched(temp / "bert", {{"cls.predictions.decoder.bias", {3}}}), "cls.predictions.decoder.bias"),
      9);
}

TEST(Weights, TheBiasThatAnUntiedBertDoesNotUseIsReadAsItIsOrAsACopy) {
  const std::string used = "cls.predictions.decoder.bias", unused = "cls.predictions.bias";
  TempDir temp;
  write_folder(temp / "both", {{unused, {3}, 0}, {used, {3}, 9}});
  EXPECT_EQ(first(matched(temp / "both", {{used, {3}}}), unused), 0);
  write_folder(temp / "old-export", {{used, {3}, 9}});
  EXPECT_EQ(first(matched(temp / "old-export", {{used, {3}}}), unused), 9);
  // In transformers 4 the two are one tensor, which files contain once.
  write_folder(temp / "transformers-4", {{unused, {3}, 5}});
  EXPECT_EQ(first(matched(temp / "transformers-4", {{used, {3}}}), used), 5);
  write_folder(temp / "misshapen", {{unused, {4}, 0}, {used, {3}, 9}});
  EXPECT_CONTAINS(user_error([&] { matched(temp / "misshapen", {{used, {3}}}); }), "cls.predictions.bias [4] instead of [3]");
  const auto names = with_copies({{used, DType::bf16, {3}}, {"cls.predictions.decoder.weight", DType::bf16, {3, 2}}});
  ASSERT_EQ(names.size(), 3u);
  EXPECT_EQ(names[1], (TensorSpec{unused, DType::bf16, {3}}));
}

TEST(Weights, AnotherModelIsRefusedWithWhatIsMissingMisshapenAndTooMuch) {
  TempDir temp;
  write_folder(temp / "m", {{"model.norm.weight", {4}}, {"model.extra.weight", {1}}});
  std::vector<Stored> expected{{"model.norm.weight", {5}}};
  for (int i = 0; i < 11; i++) expected.push_back({fmt::format("model.layers.{:02}.w", i), {1}});
  std::string message = user_error([&] { matched(temp / "m", expected); });
  EXPECT_CONTAINS(message, "expected the 12 tensors of the model");
  EXPECT_CONTAINS(message, "no tensor named model.layers.00.w");
  EXPECT_CONTAINS(message, "model.layers.04.w and 6 more");
  EXPECT_CONTAINS(message, "model.norm.weight [4] instead of [5]");
  EXPECT_CONTAINS(message, "unexpected tensors model.extra.weight");
  EXPECT_EQ(message.find("layers.05"), std::string::npos);
}

HeadTensors small_head(HeadUse use) {
  return {.use = use, .what = "language-model head", .base = "model.", .names = {"lm_head.weight", "lm_head.bias"}};
}

TEST(Weights, AFolderWithoutTheHeadSaysWhatToDo) {
  TempDir temp;
  const std::vector<Stored> expected{{"model.norm.weight", {4}}, {"lm_head.weight", {3, 4}}, {"lm_head.bias", {3}}};
  const auto message = [&](const std::string& folder, HeadUse use) {
    return user_error([&] { WeightSource::open_model(temp / folder).check_matches(specs(expected), small_head(use)); });
  };
  write_folder(temp / "base", {{"model.norm.weight", {4}, 1}});
  EXPECT_EQ(message("base", HeadUse::replaceable),
            (temp / "base").string() + ": expected the 3 tensors of the model, got 1 of them; the folder has no language-model "
                                       "head; set `model.new_head: true` to start one");
  EXPECT_CONTAINS(message("base", HeadUse::required), "no language-model head; train from it with `model.new_head: true`");
  write_folder(temp / "bare", {{"norm.weight", {4}, 1}});
  EXPECT_CONTAINS(message("bare", HeadUse::replaceable), "set `model.new_head: true` to start one");
  write_folder(temp / "reward", {{"model.norm.weight", {4}, 1}, {"score.weight", {1, 4}}});
  EXPECT_CONTAINS(message("reward", HeadUse::replaceable), "set `model.new_head: true` to start one");
  write_folder(temp / "half", {{"model.norm.weight", {4}, 1}, {"lm_head.bias", {3}}});
  EXPECT_CONTAINS(message("half", HeadUse::replaceable), "no tensor named lm_head.weight");
  write_folder(temp / "other", {{"model.x", {4}, 1}});
  EXPECT_CONTAINS(message("other", HeadUse::replaceable), "weights that belong to this config.json");
}

TEST(Weights, ANewHeadIsNeitherExpectedNorRead) {
  TempDir temp;
  const std::vector<Stored> expected{{"model.norm.weight", {4}}, {"lm_head.weight", {3, 4}}, {"lm_head.bias", {3}}};
  const HeadTensors head = small_head(HeadUse::fresh);
  const auto matches = [&](const std::string& folder) {
    WeightSource source = WeightSource::open_model(temp / folder);
    source.check_matches(specs(expected), head);
    EXPECT_EQ(first(source, "model.norm.weight"), 1);
    return source.has_any_head(head);
  };
  write_folder(temp / "base", {{"model.norm.weight", {4}, 1}});
  write_folder(temp / "bare", {{"norm.weight", {4}, 1}});
  write_folder(temp / "whole", {{"model.norm.weight", {4}, 1}, {"lm_head.weight", {7, 7}}, {"lm_head.bias", {3}}});
  write_folder(temp / "reward", {{"model.norm.weight", {4}, 1}, {"score.weight", {1, 4}}});
  EXPECT_FALSE(matches("base") || matches("bare"));
  EXPECT_TRUE(matches("whole") && matches("reward"));
  write_folder(temp / "extra", {{"model.norm.weight", {4}, 1}, {"model.x", {4}}});
  EXPECT_CONTAINS(user_error([&] { matches("extra"); }), "unexpected tensors model.x");
  std::vector<Stored> large = expected;
  for (int i = 0; i < 106; i++) large.push_back({fmt::format("model.layers.{:03}.w", i), {1}});
  EXPECT_CONTAINS(user_error([&] { WeightSource::open_model(temp / "base").check_matches(specs(large), head); }),
                  "model.layers.004.w and 101 more");
}

TEST(Weights, TheHeadIsWhatABareModelDoesNotHave) {
  ModelShape shape = find_family("llama")->presets().front().shape;
  fill_defaults(shape);
  shape.tied = false;
  EXPECT_EQ(head_of(shape, HeadUse::required).names, std::set<std::string>{"lm_head.weight"});
  shape.tied = true;
  EXPECT_TRUE(head_of(shape, HeadUse::required).names.empty());
  shape = find_family("bert")->presets().front().shape;
  fill_defaults(shape);
  const HeadTensors head = head_of(shape, HeadUse::required);
  EXPECT_EQ(head.what, "masked-language head");
  EXPECT_EQ(head.names.size(), 5u);
  EXPECT_TRUE(head.has("cls.predictions.bias"));
}

TEST(Weights, ShardedFolderReadsLikeASingleFile) {
  TempDir temp;
  std::vector<Stored> tensors{{"a", {10}, 1}, {"b", {10}, 2}, {"c", {10}, 3}};
  write_folder(temp / "m", tensors, 40);
  EXPECT_TRUE(fs::exists(temp / "m" / "model-00003-of-00003.safetensors"));
  WeightSource source = matched(temp / "m", tensors);
  EXPECT_EQ(first(source, "c"), 3);
  EXPECT_EQ(source.tensors().size(), 3u);
}

TEST(Weights, AnIndexThatLeavesItsFolderOrLiesIsRefused) {
  TempDir temp;
  auto message = [&](const std::string& index) {
    write_file_atomically(temp / "model.safetensors.index.json", index);
    return user_error([&] { WeightSource::open_model(temp.path()); });
  };
  EXPECT_CONTAINS(message(R"({"weight_map": {"a": "../../etc/passwd"}})"),
                  "the name of a file in this folder");
  EXPECT_CONTAINS(message(R"({"weight_map": {"a": 1}})"), "the name of a file in this folder");
  EXPECT_CONTAINS(message(R"({"weight_map": []})"), "an object that maps tensors to files");
  EXPECT_CONTAINS(message("{"), "weight_map");
  EXPECT_CONTAINS(message(R"({"weight_map": {"a": "model-1.safetensors"}})"), "No such file");
}

TEST(Weights, AFolderWithoutSafetensorsSaysWhatItHas) {
  TempDir temp;
  EXPECT_CONTAINS(user_error([&] { WeightSource::open_model(temp.path()); }), "got neither");
  write_file_atomically(temp / "pytorch_model.bin", "");
  EXPECT_CONTAINS(user_error([&] { WeightSource::open_model(temp.path()); }), "got pytorch_model.bin");
}

TEST(Weights, OptimizerStateHasFilesOfItsOwn) {
  TempDir temp;
  EXPECT_TRUE(WeightSource::open_optimizer(temp.path()).tensors().empty());
  std::vector<FileSpec> files =
      plan_files({{"w.exp_avg", DType::f32, {3}}, {"w.exp_avg_sq", DType::f32, {3}}}, 12, "optimizer",
                 Numbering::always);
  CheckpointWriter writer(temp / "c", files, {});
  writer.write(files[0].file, "w.exp_avg", 0, test::bytes_of(test::ramp(3, 1)));
  writer.write(files[1].file, "w.exp_avg_sq", 0, test::bytes_of(test::ramp(3, 2)));
  writer.commit({{"step", 1}});
  WeightSource source = WeightSource::open_optimizer(temp / "c");
  EXPECT_EQ(first(source, "w.exp_avg_sq"), 2);
}

TEST(Weights, StateThatIsNoJsonIsRefused) {
  TempDir temp;
  write_file_atomically(temp / "state.json", "{\"step\":");
  EXPECT_CONTAINS(user_error([&] { read_state(temp.path()); }), "a JSON object");
}

}  // namespace
}  // namespace megalith
