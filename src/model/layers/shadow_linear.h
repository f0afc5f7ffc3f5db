// One product of the experts whose rows are computed here: this rank's own and those that it borrows (expert_balance.h). Of
// a borrowed expert its weights come when this is made, and its gradient goes to its owner when there is one. All ranks
// make the same calls.
#pragma once
#include <functional>

#include "model/layers/token_dispatch.h"
#include "model/layers/grouped_linear.h"

namespace megalith {

class ShadowLinear {
 public:
  // Borrows both.
  ShadowLinear(const TokenDispatch& way, const GroupedLinear& own);

  at::Tensor forward(const at::Tensor& x_HI) const { return here_.forward(x_HI, way_.begin()); }
  at::Tensor input_gradient(const at::Tensor& g_HO) const { return here_.input_gradient(g_HO, way_.begin()); }
  // Adds what comes of the experts that are lent out, in the order of the shadows; what is left to do is to add what the
  // experts of this rank have here, which needs nobody.
  std::function<void()> gradients(at::Tensor x_HI, at::Tensor g_HO) const;

 private:
  // From `from` (there `given`) to `to` (there the result, of such a shape); undefined on other ranks.
  at::Tensor moved(const at::Tensor& given, int64_t from, int64_t to, at::IntArrayRef shape, at::ScalarType type) const;
  size_t group_of(int64_t expert) const;  // among those here

  const TokenDispatch& way_;
  const GroupedLinear& own_;
  GroupedLinear here_;
  int64_t own_begin_ = 0;  // of the groups here, where this rank's own begin
};

}  // namespace megalith
