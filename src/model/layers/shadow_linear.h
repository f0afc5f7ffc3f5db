// One product of the experts that this rank computes: its own and those that it borrows (expert_balance.h). The constructor
// receives the weights of borrowed experts. `gradients` sends their gradients to the ranks that own them. All ranks must
// make the same calls.
#pragma once
#include <functional>

#include "model/layers/token_dispatch.h"
#include "model/layers/grouped_linear.h"

namespace megalith {

class ShadowLinear {
 public:
  // Borrows both arguments.
  ShadowLinear(const TokenDispatch& way, const GroupedLinear& own);

  at::Tensor forward(const at::Tensor& x_HI) const { return here_.forward(x_HI, way_.begin()); }
  at::Tensor input_gradient(const at::Tensor& g_HO) const { return here_.input_gradient(g_HO, way_.begin()); }
  // Sends the gradients of borrowed experts, and adds those received for lent experts, in the order of the shadows. Returns
  // the rest of the work, which needs no other rank: adding what this rank's own rows give to its own experts.
  std::function<void()> gradients(at::Tensor x_HI, at::Tensor g_HO) const;

 private:
  // Sends `given` from rank `from` to rank `to`. Returns it on rank `to`, with this shape. Undefined on all other ranks.
  at::Tensor moved(const at::Tensor& given, int64_t from, int64_t to, at::IntArrayRef shape, at::ScalarType type) const;
  size_t group_of(int64_t expert) const;  // index of the expert in way_.experts()

  const TokenDispatch& way_;
  const GroupedLinear& own_;
  GroupedLinear here_;
  int64_t own_begin_ = 0;  // index of this rank's first own expert in here_
};

}  // namespace megalith
