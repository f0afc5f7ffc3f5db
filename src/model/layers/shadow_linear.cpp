#include "model/layers/shadow_linear.h"

#include <algorithm>

#include "model/tensor_ops.h"

namespace megalith {

ShadowLinear::ShadowLinear(const TokenDispatch& way, const GroupedLinear& own) : way_(way), own_(own) {
  if (way.balance().shadows.empty()) {
    here_ = own;
    return;
  }
  own_begin_ = static_cast<int64_t>(group_of(way.first_own()));
  here_.weights.resize(way.experts().size());
  std::copy(own.weights.begin(), own.weights.end(), here_.weights.begin() + own_begin_);
  const at::Tensor& like = own.weights[0].value;
  for (const ExpertBalance::ShadowExpert& shadow : way.balance().shadows) {
    const bool lends = shadow.owner == way.ranks()->rank();
    const at::Tensor given = lends ? own.weights[static_cast<size_t>(shadow.expert - way.first_own())].value : at::Tensor();
    const at::Tensor came = moved(given, shadow.owner, shadow.taker, like.sizes(), like.scalar_type());
    if (came.defined()) here_.weights[group_of(shadow.expert)].value = came;
  }
}

size_t ShadowLinear::group_of(int64_t expert) const {
  return static_cast<size_t>(std::ranges::lower_bound(way_.experts(), expert) - way_.experts().begin());
}

at::Tensor ShadowLinear::moved(const at::Tensor& given, int64_t from, int64_t to, at::IntArrayRef shape,
                             at::ScalarType type) const {
  Exchange& ranks = *way_.ranks();
  const int64_t me = ranks.rank();
  const auto cuts = [&](bool any, int64_t other) {  // one row for rank `other`, or no rows
    std::vector<int64_t> all(static_cast<size_t>(ranks.size()) + 1, 0);
    if (any) std::fill(all.begin() + other + 1, all.end(), 1);
    return all;
  };
  const int64_t size = c10::multiply_integers(shape);
  const at::Tensor send = me == from ? given.reshape({1, size}) : tensor::empty({0, size}, type);
  at::Tensor receive = tensor::empty({me == to ? 1 : 0, size}, type);
  ranks.all_to_all(send, cuts(me == from, to), receive, cuts(me == to, from));
  return me == to ? receive.view(shape) : at::Tensor();
}

std::function<void()> ShadowLinear::gradients(at::Tensor x_HI, at::Tensor g_HO) const {
  const Weight& like = own_.weights[0];
  if (!like.grad.defined()) return [] {};
  const std::span<const int64_t> begin = way_.begin();
  for (const ExpertBalance::ShadowExpert& shadow : way_.balance().shadows) {
    at::Tensor made;
    if (shadow.taker == way_.ranks()->rank()) {
      const size_t group = group_of(shadow.expert);
      made = tensor::zeros(like.grad.sizes(), like.grad.options());
      GroupedLinear{{{here_.weights[group].value, made}}}.add_gradients(x_HI, g_HO, begin.subspan(group, 2));
    }
    const at::Tensor came = moved(made, shadow.taker, shadow.owner, like.grad.sizes(), like.grad.scalar_type());
    if (came.defined()) own_.weights[static_cast<size_t>(shadow.expert - way_.first_own())].grad.add_(came);
  }
  const auto first = begin.begin() + own_begin_;
  return [own = &own_, x_HI, g_HO, begin = std::vector<int64_t>(first, first + std::ssize(own_.weights) + 1)] {
    own->add_gradients(x_HI, g_HO, begin);
  };
}

}  // namespace megalith
