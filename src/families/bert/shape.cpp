// BERT: learned positions and token types, LayerNorm after each half, GELU, a head that fills in masked tokens.
#include "families/list.h"

namespace megalith {
namespace bert {
namespace {

ModelShape defaults() {
  ModelShape shape;
  shape.context = 512;
  shape.norm_eps = 1e-12;
  shape.token_types = 2;
  return shape;
}

void fill(ModelShape& shape) { shape.ffn = 4 * shape.hidden; }

ModelShape preset(int64_t layers, int64_t hidden, int64_t heads) {
  ModelShape shape = default_shape(bert_family);
  shape.layers = layers;
  shape.hidden = hidden;
  shape.heads = heads;
  shape.vocab = 30522;
  return shape;
}

std::span<const Preset> presets() {
  static const std::vector<Preset> table{
      {"bert-base", "BERT base, uncased (Devlin et al. 2018)", preset(12, 768, 12)},
      {"bert-large", "BERT large, uncased", preset(24, 1024, 16)},
  };
  return table;
}

}  // namespace
}  // namespace bert

constinit const Family bert_family{.name = "bert",
                                   .bidirectional = true,
                                   .uses = {.token_types = true},
                                   .defaults = bert::defaults,
                                   .fill = bert::fill,
                                   .presets = bert::presets,
                                   .parameters = bert::parameters,
                                   .facts = bert::facts,
                                   .hf_names = bert::hf_names,
                                   .read_config = bert::read_config,
                                   .write_config = bert::write_config};

}  // namespace megalith
