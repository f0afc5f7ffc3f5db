#include "tools/import_llama2c.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "checkpoint/hf_config.h"
#include "checkpoint/reader.h"
#include "checkpoint/support.h"
#include "checkpoint/verify.h"

namespace megalith {
namespace {

using test::TempDir;
using test::user_error;

struct Llama2c {
  int32_t dim = 8, ffn = 12, layers = 2, heads = 2, kv_heads = 1, vocab = 5, seq = 6;
  int64_t floats() const {
    int64_t d = dim, kv = dim / heads * kv_heads, words = std::abs(vocab);
    return words * d * (vocab < 0 ? 2 : 1) + layers * (2 * d + 2 * d * d + 2 * d * kv + 3 * d * ffn) + d +
           seq * (dim / heads);
  }
  // Every float is its own index: a tensor's origin shows in its values.
  std::string bytes() const {
    std::string file(28 + static_cast<size_t>(floats()) * 4, '\0');
    int32_t header[7] = {dim, ffn, layers, heads, kv_heads, vocab, seq};
    std::memcpy(file.data(), header, 28);
    std::vector<float> values = test::ramp(floats(), 0);
    std::memcpy(file.data() + 28, values.data(), values.size() * 4);
    return file;
  }
};

float element(const WeightSource& source, const std::string& name, int64_t index) {
  float value = -1;
  source.read_f32(name, index, std::span(&value, 1));
  return value;
}

TEST(Llama2c, EveryArrayLandsUnderItsHuggingFaceName) {
  TempDir temp;
  Llama2c model;
  write_file_atomically(temp / "m.bin", model.bytes());
  import_llama2c(temp / "m.bin", "{\"tokenizer\": 1}", temp / "out");
  EXPECT_TRUE(verify(temp / "out").ok());
  EXPECT_EQ(read_file(temp / "out" / "tokenizer.json"), "{\"tokenizer\": 1}");
  ModelShape shape = read_hf_config(temp / "out");
  EXPECT_EQ(shape.kv_heads, 1);
  EXPECT_EQ(shape.context, 6);
  EXPECT_TRUE(shape.tied);

  WeightSource source = WeightSource::open_model(temp / "out");
  EXPECT_EQ(source.tensors().size(), 2u + 2 * 9);
  // Offsets of the arrays, computed by hand: embedding 40, attention norms 2*8, wq 2*64, wk 2*32, wv 2*32, wo 2*64,
  // ...
  EXPECT_EQ(element(source, "model.embed_tokens.weight", 39), 39);
  EXPECT_EQ(element(source, "model.layers.1.input_layernorm.weight", 0), 48);
  EXPECT_EQ(element(source, "model.layers.0.self_attn.v_proj.weight", 0), 40 + 16 + 128 + 64);
  EXPECT_EQ(element(source, "model.layers.1.self_attn.o_proj.weight", 3), 40 + 16 + 128 + 64 + 64 + 64 + 3);
  EXPECT_EQ(element(source, "model.layers.0.post_attention_layernorm.weight", 0), 440);
  EXPECT_EQ(element(source, "model.layers.0.mlp.gate_proj.weight", 0), 456);
  EXPECT_EQ(element(source, "model.layers.0.mlp.down_proj.weight", 0), 456 + 192);
  EXPECT_EQ(element(source, "model.layers.1.mlp.up_proj.weight", 0), 456 + 2 * 192 + 96);
  EXPECT_EQ(element(source, "model.norm.weight", 0), 456 + 3 * 192);
}

// RoPE in the two conventions gives the same scores between any two positions.
TEST(Llama2c, RotaryRowsAreReorderedSoThatAttentionStaysTheSame) {
  TempDir temp;
  Llama2c model;
  write_file_atomically(temp / "m.bin", model.bytes());
  import_llama2c(temp / "m.bin", "", temp / "out");
  EXPECT_FALSE(std::filesystem::exists(temp / "out" / "tokenizer.json"));
  WeightSource source = WeightSource::open_model(temp / "out");
  const int width = 4, d = 8;
  std::vector<float> theirs = test::ramp(model.floats(), 0), hf_q(64), hf_k(32);
  source.read_f32("model.layers.0.self_attn.q_proj.weight", 0, hf_q);
  source.read_f32("model.layers.0.self_attn.k_proj.weight", 0, hf_k);
  auto project = [&](const float* rows, int position, bool interleaved) {
    std::vector<double> out(width), turned(width);
    for (int r = 0; r < width; r++)
      for (int c = 0; c < d; c++) out[r] += rows[r * d + c] * std::cos(c + position);  // any input will do
    for (int i = 0; i < width / 2; i++) {
      int a = interleaved ? 2 * i : i, b = interleaved ? 2 * i + 1 : i + width / 2;
      double angle = position * std::pow(10000.0, -2.0 * i / width);
      turned[a] = out[a] * std::cos(angle) - out[b] * std::sin(angle);
      turned[b] = out[a] * std::sin(angle) + out[b] * std::cos(angle);
    }
    return turned;
  };
  auto dot = [](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); i++) sum += a[i] * b[i];
    return sum;
  };
  for (int head = 0; head < 2; head++) {
    const float *q = theirs.data() + 56 + head * width * d, *k = theirs.data() + 56 + 128;
    double expected = dot(project(q, 3, true), project(k, 5, true));
    double got = dot(project(hf_q.data() + head * width * d, 3, false), project(hf_k.data(), 5, false));
    EXPECT_NEAR(got, expected, 1e-9 * std::abs(expected));
  }
}

TEST(Llama2c, NegativeVocabularyMeansAHeadOfItsOwn) {
  TempDir temp;
  Llama2c model{.vocab = -5};
  write_file_atomically(temp / "m.bin", model.bytes());
  import_llama2c(temp / "m.bin", "", temp / "out");
  WeightSource source = WeightSource::open_model(temp / "out");
  EXPECT_FALSE(read_hf_config(temp / "out").tied);
  EXPECT_EQ(element(source, "lm_head.weight", 39), static_cast<float>(model.floats() - 1));
}

TEST(Llama2c, FilesThatAreSomethingElseAreRefused) {
  TempDir temp;
  auto message = [&](const std::string& bytes) {
    write_file_atomically(temp / "m.bin", bytes);
    std::string text = user_error([&] { import_llama2c(temp / "m.bin", "", temp / "out"); });
    EXPECT_FALSE(std::filesystem::exists(temp / "out"));
    return text;
  };
  std::string good = Llama2c{}.bytes();
  EXPECT_CONTAINS(message(good.substr(0, good.size() - 4)), "bytes according to the header");
  EXPECT_CONTAINS(message(good + "1234"), "bytes according to the header");
  EXPECT_CONTAINS(message("short"), "a header of 28 bytes");
  EXPECT_CONTAINS(message(std::string("24ka\x02\0\0\0", 8) + std::string(100, '\0')), "version 2");
  EXPECT_CONTAINS(message(Llama2c{.heads = 8}.bytes()), "n_heads");
  std::string huge = good;  // numbers whose products exceed 64 bits
  int32_t header[7] = {1 << 28, 1 << 28, 1 << 28, 1, 1, 1 << 28, 1 << 28};
  std::memcpy(huge.data(), header, sizeof header);
  EXPECT_CONTAINS(message(huge), "a file size below 2^63 bytes");
  std::string negative(28, '\x80');
  EXPECT_CONTAINS(message(negative), "dim: expected a whole number");
  write_file_atomically(temp / "m.bin", good);
  EXPECT_CONTAINS(user_error([&] { import_llama2c(temp / "m.bin", "", temp.path()); }),
                  "one with files in it");
  EXPECT_CONTAINS(user_error([&] { import_llama2c(temp / "none.bin", "", temp / "out"); }), "No such file");
}

}  // namespace
}  // namespace megalith
