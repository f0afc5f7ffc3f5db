// Llama, Mistral, Qwen2; with experts, Mixtral and Qwen2-MoE: rotary positions, RMSNorm, SwiGLU, grouped-query
// attention.
#include <fmt/format.h>

#include "families/list.h"
#include "families/llama/mixtral.h"
#include "families/shape_check.h"

namespace megalith {
namespace llama {
namespace {

ModelShape defaults() {
  ModelShape shape;
  shape.tied = false;
  shape.context = 2048;
  return shape;
}

void fill(ModelShape& shape) { shape.ffn = (shape.hidden * 8 / 3 + 63) / 64 * 64; }

void check(const ModelShape& s, const ShapeCheck& check) {
  auto show = [](int64_t value) { return fmt::format("{}", value); };
  check.at_least_1(s.kv_heads, "model.kv_heads");
  check.require(s.heads % s.kv_heads == 0, "model.kv_heads", fmt::format("a divisor of model.heads ({})", s.heads),
                show(s.kv_heads), nearby_divisors(s.heads, s.kv_heads));
  check.require(s.head_size % 2 == 0, "model.head_dim", "an even number (rotary positions need it)", show(s.head_size));
  check.require(!s.output_bias || s.qkv_bias, "model.output_bias", "false unless model.qkv_bias is true", "true",
                "set model.qkv_bias: true, or remove model.output_bias");
  check.require(
      s.head_dim() % 2 == 0, "model.heads",
      "an even width of a head, model.hidden / model.heads (rotary positions need it)",
      fmt::format("{} / {} = {}", s.hidden, s.heads, s.head_dim()), "choose another number of heads");
}

struct Numbers {
  int64_t layers, hidden, heads, kv_heads, ffn, vocab, context;
  bool tied;
};

ModelShape preset(const Numbers& n) {
  ModelShape shape = default_shape(llama_family);
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

ModelShape qwen2(const Numbers& n) {
  ModelShape shape = preset(n);
  shape.qkv_bias = true;
  shape.norm_eps = 1e-6;
  shape.rope_theta = 1e6;
  return shape;
}

std::span<const Preset> presets() {
  static const std::vector<Preset> table{
      {"llama-10m", "small enough for a laptop, with a vocabulary of 4096",
       preset({5, 384, 6, 0, 0, 4096, 1024, true})},
      {"llama-110m", "stories110M of llama2.c", preset({12, 768, 12, 0, 0, 32000, 1024, true})},
      {"llama-1b", "TinyLlama 1.1B (Zhang et al. 2024), grouped-query attention",
       preset({22, 2048, 32, 4, 5632, 32000, 2048, false})},
      {"llama-7b", "Llama 2 7B (Touvron et al. 2023)", preset({32, 4096, 32, 0, 11008, 32000, 4096, false})},
      {"qwen2-0.5b", "Qwen2 0.5B (Yang et al. 2024), biases on queries, keys and values",
       qwen2({24, 896, 14, 2, 4864, 151936, 131072, true})},
  };
  return table;
}

}  // namespace

bool is_mixtral(const ModelShape& s) {
  const Experts& x = s.experts;
  return x.any() && !x.share_layers && x.router != Router::switch_ && x.normalise && x.every == 1 && x.dense_first == 0 &&
         x.shared == 0 && x.ffn == s.ffn && !s.qkv_bias && !s.output_bias;
}

}  // namespace llama

constinit const Family llama_family{.name = "llama",
                                    .uses = {.kv_heads = true,
                                             .head_dim = true,
                                             .rope_theta = true,
                                             .qkv_bias = true,
                                             .output_bias = true,
                                             .experts = true},
                                    .defaults = llama::defaults,
                                    .fill = llama::fill,
                                    .check = llama::check,
                                    .presets = llama::presets,
                                    .parameters = llama::parameters,
                                    .facts = llama::facts,
                                    .hf_names = llama::hf_names,
                                    .read_config = llama::read_config,
                                    .write_config = llama::write_config};

}  // namespace megalith
