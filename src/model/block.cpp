#include "model/block.h"

#include "base/error.h"
#include "families/family.h"
#include "families/list.h"
#include "model/archs.h"
#include "model/computing_buffer.h"

namespace megalith {

void Block::bind(const at::Tensor& values, const at::Tensor& gradients) {
  MEGALITH_ASSERT(!values.defined() || values.numel() >= spec_.flat_size, "{}", spec_.name);
  values_ = values;
  gradients_ = gradients;
  wire();
}

Weight Block::weight(const std::string& suffix) const { return joined(suffix, suffix); }

Weight Block::joined(const std::string& first_suffix, const std::string& last_suffix) const {
  if (owner_ && !spec_.find(first_suffix)) return owner_->joined(first_suffix, last_suffix);
  const ParameterSpec &first = spec_.parameter(first_suffix), &last = spec_.parameter(last_suffix);
  int64_t elements = last.offset + last.size() - first.offset;
  std::vector<int64_t> shape = first.shape;
  shape[0] = elements / (first.size() / first.shape[0]);
  auto view = [&](const at::Tensor& flat) {
    return flat.defined() ? flat.narrow(0, first.offset, elements).view(shape) : at::Tensor();
  };
  if (first.wide && values_.defined() && values_.numel() > spec_.flat_size)
    return {wide_values(spec_, values_).narrow(0, spec_.wide_before(first.offset), elements).view(shape), view(gradients_)};
  return {view(values_), view(gradients_)};
}

at::Tensor HeadBlock::forward(const at::Tensor&, const Pass&, Tape*) { throw Bug("a head has no output activation"); }
at::Tensor HeadBlock::backward(const at::Tensor&, const Pass&, Tape&) { throw Bug("a head's loss is its backward"); }

std::vector<std::unique_ptr<Block>> make_blocks(const ModelShape& shape, const Ranks& ranks) {
  auto fits = [](const Exchange* exchange, int64_t size, int64_t rank) {
    return exchange ? exchange->size() == size && exchange->rank() == rank : size == 1;
  };
  MEGALITH_ASSERT(fits(ranks.tensor, ranks.split.tensor, ranks.split.tensor_rank) &&
                  fits(ranks.context, ranks.split.context, ranks.split.context_rank) &&
                  fits(ranks.expert, ranks.split.expert, ranks.split.expert_rank));
  std::vector<std::unique_ptr<Block>> blocks;
  for (BlockSpec& spec : list_blocks(shape, ranks.split)) {
    const auto make = shape.family == &gpt2_family    ? make_gpt2_block
                      : shape.family == &llama_family ? make_llama_block
                                                      : make_bert_block;
    blocks.push_back(make(shape, std::move(spec), ranks));
  }
  if (shape.experts.share_layers)
    for (size_t layer = 1; layer < static_cast<size_t>(shape.layers); layer++) blocks[1 + layer]->lean_on(*blocks[1]);
  return blocks;
}

}  // namespace megalith
