#include "tools/import_llama2c.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/writer.h"
#include "families/list.h"
#include "text/llama2c.h"

namespace megalith {
namespace {

constexpr int64_t header_bytes = 7 * 4;
constexpr uint32_t later_magic = 0x616B3432;  // "ak42", the first bytes of versions 1 and 2

// Walks the float arrays of the file in order, without copying.
class Arrays {
 public:
  explicit Arrays(std::span<const std::byte> bytes) : rest_(bytes) {}
  std::span<const std::byte> next(int64_t floats) {
    auto taken = rest_.first(static_cast<size_t>(floats * 4));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }

 private:
  std::span<const std::byte> rest_;
};

ModelShape read_header(std::span<const std::byte> bytes, const std::string& where) {
  auto refuse = [&](const std::string& key, const std::string& expected, const std::string& got) {
    throw UserError({where, key, expected, got, "only llama2.c's version-0 files (float32) can be imported"});
  };
  std::array<int32_t, 7> h{};
  if (std::ssize(bytes) < header_bytes)
    refuse("", "a header of 28 bytes", fmt::format("a file of {}", bytes.size()));
  std::memcpy(h.data(), bytes.data(), header_bytes);
  if (static_cast<uint32_t>(h[0]) == later_magic) refuse("", "version 0", fmt::format("version {}", h[1]));
  constexpr std::array<const char*, 7> names{"dim",        "hidden_dim", "n_layers", "n_heads",
                                             "n_kv_heads", "vocab_size", "seq_len"};
  constexpr int32_t most = 1 << 28;
  bool untied = h[5] < 0;  // in version 0, a negative vocab_size means that the head has its own weights
  if (untied && h[5] >= -most) h[5] = -h[5];
  for (size_t i = 0; i < h.size(); i++)
    if (h[i] < 1 || h[i] > most)
      refuse(names[i], fmt::format("a whole number from 1 to {}", most), fmt::format("{}", h[i]));
  if (h[0] % h[3] != 0 || h[0] / h[3] % 2 != 0)
    refuse("n_heads", fmt::format("a number of heads that gives an even head width in dim {}", h[0]),
           fmt::format("{}", h[3]));
  if (h[3] % h[4] != 0)
    refuse("n_kv_heads", fmt::format("a divisor of n_heads ({})", h[3]), fmt::format("{}", h[4]));
  ModelShape s;
  s.family = &llama_family;
  s.hidden = h[0];
  s.ffn = h[1];
  s.layers = h[2];
  s.heads = h[3];
  s.kv_heads = h[4];
  s.vocab = h[5];
  s.context = h[6];
  s.tied = !untied;
  s.norm_eps = 1e-5;  // both are constants of llama2.c, not in the file
  s.rope_theta = 10000;
  return s;
}

void check_size(const ModelShape& s, size_t got, const std::string& where) {
  using Wide = __int128;  // products of seven 28-bit numbers from a file
  Wide d = s.hidden, kv = s.head_dim() * s.kv_heads;
  Wide layer = 2 * d + 2 * d * d + 2 * d * kv + 3 * d * s.ffn;
  Wide floats = s.vocab * d * (s.tied ? 1 : 2) + s.layers * layer + d + Wide(s.context) * s.head_dim();
  Wide expected = header_bytes + 4 * floats;
  if (expected != static_cast<Wide>(got))
    throw UserError({where, "",
                     expected > INT64_MAX
                         ? "a file size below 2^63 bytes"
                         : fmt::format("{} bytes according to the header", static_cast<int64_t>(expected)),
                     fmt::format("{}", got), "the file is truncated, or is not a llama2.c version-0 file"});
}

// Reorders rows for RoPE, which rotates pairs of rows. In llama2.c a pair is two neighbours (2i, 2i+1). In Hugging Face's
// order its rows are half a head apart (i, i + width/2).
std::vector<std::byte> halves_from_pairs(std::span<const std::byte> matrix, int64_t heads, int64_t width,
                                         int64_t columns) {
  std::vector<std::byte> result(matrix.size());
  size_t row = static_cast<size_t>(columns) * 4;
  for (int64_t head = 0; head < heads; head++)
    for (int64_t i = 0; i < width; i++) {
      size_t from = static_cast<size_t>(head * width + i),
             to = static_cast<size_t>(head * width + i / 2 + i % 2 * (width / 2));
      std::memcpy(result.data() + to * row, matrix.data() + from * row, row);
    }
  return result;
}

// One array of the file: it contains the same matrix of all layers, in order.
struct LayerArray {
  const char* name;
  std::vector<int64_t> shape;
  int64_t rotary_heads = 0;  // heads whose rows must be reordered for RoPE; 0 if none
};

// Vocabulary size of a model file: the sixth number of its header, which is negative if the head is not tied.
int64_t vocab_of(const std::filesystem::path& bin) {
  MappedFile file(bin);
  if (file.bytes().size() < 28) return 0;  // import_llama2c reports the error
  int32_t vocab = 0;
  std::memcpy(&vocab, file.bytes().data() + 20, sizeof vocab);
  return std::abs(static_cast<int64_t>(vocab));
}

}  // namespace

void import_llama2c(const std::filesystem::path& bin, const std::string& tokenizer_json,
                    const std::filesystem::path& out_dir) {
  check_new_folder(out_dir);
  MappedFile file(bin);
  ModelShape s = read_header(file.bytes(), bin.string());
  check_size(s, file.bytes().size(), bin.string());
  int64_t d = s.hidden, kv = s.head_dim() * s.kv_heads;
  const std::vector<LayerArray> arrays{{"input_layernorm.weight", {d}},
                                       {"self_attn.q_proj.weight", {d, d}, s.heads},
                                       {"self_attn.k_proj.weight", {kv, d}, s.kv_heads},
                                       {"self_attn.v_proj.weight", {kv, d}},
                                       {"self_attn.o_proj.weight", {d, d}},
                                       {"post_attention_layernorm.weight", {d}},
                                       {"mlp.gate_proj.weight", {s.ffn, d}},
                                       {"mlp.down_proj.weight", {d, s.ffn}},
                                       {"mlp.up_proj.weight", {s.ffn, d}}};
  auto layer_name = [](int64_t layer, const LayerArray& array) {
    return fmt::format("model.layers.{}.{}", layer, array.name);
  };
  std::vector<TensorSpec> tensors{{"model.embed_tokens.weight", DType::f32, {s.vocab, d}}};
  for (int64_t layer = 0; layer < s.layers; layer++)
    for (const LayerArray& array : arrays)
      tensors.push_back({layer_name(layer, array), DType::f32, array.shape});
  tensors.push_back({"model.norm.weight", DType::f32, {d}});
  if (!s.tied) tensors.push_back({"lm_head.weight", DType::f32, {s.vocab, d}});

  std::vector<std::pair<std::string, std::string>> small{
      {"config.json", hf_config(s, {.begin = 1, .end = 2})}};
  if (!tokenizer_json.empty()) small.emplace_back("tokenizer.json", tokenizer_json);
  const std::string model = "model.safetensors";
  CheckpointWriter writer(out_dir, {{model, std::move(tensors)}}, std::move(small));
  Arrays in(file.bytes().subspan(header_bytes));
  writer.write(model, "model.embed_tokens.weight", 0, in.next(s.vocab * d));
  for (const LayerArray& array : arrays)
    for (int64_t layer = 0; layer < s.layers; layer++) {
      TensorSpec spec{layer_name(layer, array), DType::f32, array.shape};
      std::span<const std::byte> bytes = in.next(spec.elements());
      if (array.rotary_heads > 0)
        writer.write(model, spec.name, 0, halves_from_pairs(bytes, array.rotary_heads, s.head_dim(), d));
      else
        writer.write(model, spec.name, 0, bytes);
    }
  writer.write(model, "model.norm.weight", 0, in.next(d));
  in.next(s.context * s.head_dim());  // cosines and sines of RoPE, which follow from theta
  if (!s.tied) writer.write(model, "lm_head.weight", 0, in.next(s.vocab * d));
  writer.commit(nullptr);
}

std::string llama2c_tokenizer(const std::filesystem::path& bin, const std::string& tokenizer) {
  if (tokenizer.empty()) return "";
  const std::string text = read_file(tokenizer);
  return tokenizer.ends_with(".json") ? text : tokenizer_from_llama2c(text, vocab_of(bin), tokenizer);
}

}  // namespace megalith
