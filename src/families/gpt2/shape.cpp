// GPT-2 and GPT-3: learned positions, LayerNorm, GELU, biases everywhere.
#include "families/list.h"

namespace megalith {
namespace gpt2 {
namespace {

ModelShape defaults() {
  ModelShape shape;
  shape.context = 1024;
  return shape;
}

void fill(ModelShape& shape) { shape.ffn = 4 * shape.hidden; }

ModelShape preset(int64_t layers, int64_t hidden, int64_t heads, int64_t context = 1024) {
  ModelShape shape = default_shape(gpt2_family);
  shape.layers = layers;
  shape.hidden = hidden;
  shape.heads = heads;
  shape.vocab = 50257;
  shape.context = context;
  return shape;
}

std::span<const Preset> presets() {
  static const std::vector<Preset> table{
      {"gpt2-124m", "GPT-2 small (Radford et al. 2019; Hugging Face gpt2)", preset(12, 768, 12)},
      {"gpt2-355m", "GPT-2 medium (gpt2-medium)", preset(24, 1024, 16)},
      {"gpt2-774m", "GPT-2 large (gpt2-large)", preset(36, 1280, 20)},
      {"gpt2-1.5b", "GPT-2 XL (gpt2-xl)", preset(48, 1600, 25)},
      // Brown et al. 2020, table 2.1, lists 24 heads of 128, but 24 x 128 is not 2048. 16 x 128 is.
      {"gpt3-1.3b", "GPT-3 XL's size (Brown et al. 2020, table 2.1), 16 heads", preset(24, 2048, 16, 2048)},
  };
  return table;
}

}  // namespace
}  // namespace gpt2

constinit const Family gpt2_family{.name = "gpt2",
                                   .defaults = gpt2::defaults,
                                   .fill = gpt2::fill,
                                   .presets = gpt2::presets,
                                   .parameters = gpt2::parameters,
                                   .facts = gpt2::facts,
                                   .hf_names = gpt2::hf_names,
                                   .read_config = gpt2::read_config,
                                   .write_config = gpt2::write_config};

}  // namespace megalith
