#include "model/block.h"

#include "base/error.h"
#include "model/computing_buffer.h"
#include "model/layers/pooling.h"

namespace megalith {

void Block::bind(const at::Tensor& values, const at::Tensor& gradients) {
  MEGALITH_ASSERT(!values.defined() || values.numel() >= spec_.flat_size, "{}", spec_.name);
  values_ = values;
  gradients_ = gradients;
  bind_weights();
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

at::Tensor HeadBlock::represent(const at::Tensor& x_NC, const Pass& pass) {
  return pool(outputs(x_NC), pass, shape_.pooling, exchanges_);
}

at::Tensor HeadBlock::represent_backward(const at::Tensor& g_BC, const at::Tensor& x_NC, const Pass& pass) {
  return outputs_backward(pool_backward(g_BC, x_NC, pass, shape_.pooling), x_NC);
}

at::Tensor HeadBlock::forward(const at::Tensor&, const Pass&, Tape*) { throw Bug("a head has no output activation"); }
at::Tensor HeadBlock::backward(const at::Tensor&, const Pass&, Tape&) {
  throw Bug("a head has no separate backward: its loss computes the gradients");
}

}  // namespace megalith
