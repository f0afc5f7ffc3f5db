#include "config/presets.h"

#include <fmt/format.h>

#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "config/names.h"
#include "config/nearest.h"

namespace megalith {
namespace {

ModelShape gpt2(int64_t layers, int64_t hidden, int64_t heads, int64_t context = 1024) {
  ModelShape shape = default_shape(Arch::gpt2);
  shape.layers = layers;
  shape.hidden = hidden;
  shape.heads = heads;
  shape.vocab = 50257;
  shape.context = context;
  return shape;
}

struct LlamaNumbers {
  int64_t layers, hidden, heads, kv_heads, ffn, vocab, context;
  bool tied;
};

ModelShape llama(const LlamaNumbers& n) {
  ModelShape shape = default_shape(Arch::llama);
  shape.layers = n.layers;
  shape.hidden = n.hidden;
  shape.heads = n.heads;
  shape.kv_heads = n.kv_heads;
  shape.ffn = n.ffn;
  shape.vocab = n.vocab;
  shape.context = n.context;
  shape.tied = n.tied;
  return shape;
}

ModelShape qwen2(const LlamaNumbers& n) {
  ModelShape shape = llama(n);
  shape.qkv_bias = true;
  shape.norm_eps = 1e-6;
  shape.rope_theta = 1e6;
  return shape;
}

ModelShape bert(int64_t layers, int64_t hidden, int64_t heads) {
  ModelShape shape = default_shape(Arch::bert);
  shape.layers = layers;
  shape.hidden = hidden;
  shape.heads = heads;
  shape.vocab = 30522;
  return shape;
}

}  // namespace

std::span<const Preset> presets() {
  static const std::vector<Preset> table{
      {"gpt2-124m", "GPT-2 small (Radford et al. 2019; Hugging Face gpt2)", gpt2(12, 768, 12)},
      {"gpt2-355m", "GPT-2 medium (gpt2-medium)", gpt2(24, 1024, 16)},
      {"gpt2-774m", "GPT-2 large (gpt2-large)", gpt2(36, 1280, 20)},
      {"gpt2-1.5b", "GPT-2 XL (gpt2-xl)", gpt2(48, 1600, 25)},
      // Brown et al. 2020, table 2.1, lists 24 heads of 128, which is not 2048; 16 heads of 128 are.
      {"gpt3-1.3b", "GPT-3 XL's size (Brown et al. 2020, table 2.1), 16 heads", gpt2(24, 2048, 16, 2048)},
      {"llama-10m", "small enough for a laptop, with a vocabulary of 4096",
       llama({5, 384, 6, 0, 0, 4096, 1024, true})},
      {"llama-110m", "stories110M of llama2.c", llama({12, 768, 12, 0, 0, 32000, 1024, true})},
      {"llama-1b", "TinyLlama 1.1B (Zhang et al. 2024), grouped-query attention",
       llama({22, 2048, 32, 4, 5632, 32000, 2048, false})},
      {"llama-7b", "Llama 2 7B (Touvron et al. 2023)", llama({32, 4096, 32, 0, 11008, 32000, 4096, false})},
      {"qwen2-0.5b", "Qwen2 0.5B (Yang et al. 2024), biases on queries, keys and values",
       qwen2({24, 896, 14, 2, 4864, 151936, 131072, true})},
      {"bert-base", "BERT base, uncased (Devlin et al. 2018)", bert(12, 768, 12)},
      {"bert-large", "BERT large, uncased", bert(24, 1024, 16)},
  };
  return table;
}

const Preset& find_preset(std::string_view name, const std::string& where) {
  std::vector<std::string_view> names;
  for (const Preset& preset : presets()) {
    if (preset.name == name) return preset;
    names.push_back(preset.name);
  }
  std::string_view near = nearest(name, names);
  throw UserError({where, "model.preset",
                   near.empty() ? fmt::format("one of {}", fmt::join(names, ", ")) : "a known model",
                   std::string(name), near.empty() ? "" : fmt::format("did you mean {}?", near)});
}

ModelShape default_shape(Arch arch) {
  ModelShape shape;
  shape.arch = arch;
  shape.tied = arch != Arch::llama;
  shape.norm_eps = arch == Arch::bert ? 1e-12 : 1e-5;
  shape.context = arch == Arch::gpt2 ? 1024 : arch == Arch::bert ? 512 : 2048;
  shape.token_types = arch == Arch::bert ? 2 : 0;
  return shape;
}

void fill_defaults(ModelShape& shape) {
  if (shape.kv_heads == 0) shape.kv_heads = shape.heads;
  if (shape.ffn == 0)
    shape.ffn = shape.arch == Arch::llama ? (shape.hidden * 8 / 3 + 63) / 64 * 64 : 4 * shape.hidden;
  if (!shape.experts.any()) return;
  if (shape.experts.top_k == 0) shape.experts.top_k = shape.experts.router == Router::switch_ ? 1 : 2;
  if (shape.experts.ffn == 0) shape.experts.ffn = shape.ffn;
}

std::string list_presets() {
  std::string table =
      fmt::format("{:<11} {:<6} {:>13} {:>7} {:>7} {:>6} {:>9} {:>6} {:>7} {:>8}  {}\n", "preset", "arch",
                  "parameters", "layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "context", "from");
  for (const Preset& preset : presets()) {
    ModelShape s = preset.shape;
    fill_defaults(s);
    table += fmt::format("{:<11} {:<6} {:>13} {:>7} {:>7} {:>6} {:>9} {:>6} {:>7} {:>8}  {}\n", preset.name,
                         name(s.arch), parameter_count(s), s.layers, s.hidden, s.heads, s.kv_heads, s.ffn,
                         s.vocab, s.context, preset.about);
  }
  return table;
}

}  // namespace megalith
