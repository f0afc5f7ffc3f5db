#include "config/model_shape.h"

#include "base/error.h"
#include "config/names.h"

namespace megalith {
namespace {

int64_t linear(int64_t in, int64_t out, bool bias) {
  return in * out + (bias ? out : 0);
}

int64_t gpt2_parameters(const ModelShape& s) {
  int64_t norm = 2 * s.hidden;
  int64_t layer = norm + linear(s.hidden, 3 * s.hidden, true) + linear(s.hidden, s.hidden, true) + norm +
                  linear(s.hidden, s.ffn, true) + linear(s.ffn, s.hidden, true);
  return (s.vocab + s.context) * s.hidden + s.layers * layer + norm;
}

int64_t expert_parameters(const ModelShape& s) {
  const Experts& x = s.experts;
  int64_t router = (x.router == Router::noisy ? 2 : 1) * linear(s.hidden, x.count, false) +
                   (x.router == Router::sigmoid ? x.count : 0);
  int64_t shared = x.shared > 0 ? 3 * linear(s.hidden, x.shared, false) + s.hidden : 0;
  return router + shared + x.count * 3 * linear(s.hidden, x.ffn, false);
}

int64_t llama_parameters(const ModelShape& s) {
  int64_t norm = s.hidden, q = s.attention_width(), kv = s.kv_heads * s.head_dim();
  int64_t layer = norm + linear(s.hidden, q, s.qkv_bias) + 2 * linear(s.hidden, kv, s.qkv_bias) +
                  linear(q, s.hidden, s.output_bias) + norm;
  int64_t sparse = 0;
  for (int64_t i = 0; i < s.layers; i++) sparse += s.experts.in_layer(i);
  if (s.experts.share_layers) return s.vocab * s.hidden + layer + expert_parameters(s) + (s.layers - 1) * 2 * norm + norm;
  return s.vocab * s.hidden + s.layers * layer + (s.layers - sparse) * 3 * linear(s.hidden, s.ffn, false) +
         sparse * expert_parameters(s) + norm;
}

int64_t bert_parameters(const ModelShape& s) {
  int64_t norm = 2 * s.hidden;
  int64_t layer = 4 * linear(s.hidden, s.hidden, true) + norm + linear(s.hidden, s.ffn, true) +
                  linear(s.ffn, s.hidden, true) + norm;
  int64_t head =
      linear(s.hidden, s.hidden, true) + norm + s.vocab;  // transform, its norm, the decoder's bias
  return (s.vocab + s.context + s.token_types) * s.hidden + norm + s.layers * layer + head;
}

}  // namespace

std::string_view name(Arch arch) {
  return name_of(arch);
}

bool is_mixtral(const ModelShape& s) {
  const Experts& x = s.experts;
  return x.any() && !x.share_layers && x.router != Router::switch_ && x.normalise && x.every == 1 && x.dense_first == 0 &&
         x.shared == 0 && x.ffn == s.ffn && !s.qkv_bias && !s.output_bias;
}

int64_t parameter_count(const ModelShape& shape) {
  MEGALITH_ASSERT(shape.heads > 0, "a shape without heads has no parameters to count");
  int64_t untied = shape.tied ? 0 : shape.vocab * shape.hidden;
  switch (shape.arch) {
    case Arch::gpt2:
      return gpt2_parameters(shape) + untied;
    case Arch::llama:
      return llama_parameters(shape) + untied;
    case Arch::bert:
      return bert_parameters(shape) + untied;
  }
  fail_assert(__FILE__, __LINE__, "shape.arch is an Arch", "");
}

}  // namespace megalith
