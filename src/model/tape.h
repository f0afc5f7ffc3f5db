// The tensors that the forward of a block keeps for its backward, as a stack. Backward takes them in reverse order, so each
// is freed as soon as it is used. There is no autograd graph: activations are data that the engine can count, pack and
// rebuild. Float32 matrices may be kept packed. Other tensors (log-sum-exps) are kept as they are. If backward defers its
// weight gradients, their products wait here, too.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "model/packed_rows.h"

namespace megalith {

class Tape {
 public:
  explicit Tape(Packing packing = Packing::fp32, bool defers_weight_gradients = false) : packing_(packing), defers_(defers_weight_gradients) {}

  void keep(at::Tensor tensor) {
    const bool packs = packing_ != Packing::fp32 && can_pack(tensor);
    kept_.push_back({packs, packs ? pack_rows(tensor, packing_) : PackedRows{std::move(tensor), {}}});
  }
  at::Tensor take() {
    MEGALITH_ASSERT(!kept_.empty(), "backward takes more than forward kept");
    Kept kept = std::move(kept_.back());
    kept_.pop_back();
    return kept.packed ? unpack_rows(kept.rows) : std::move(kept.rows.numbers);
  }
  // The tensors that were kept first and last, still on the tape. They must not be packed.
  const at::Tensor& first() const { return look(kept_.front()); }
  const at::Tensor& last() const { return look(kept_.back()); }
  // A layer calls this when its attention half has kept everything that the backward of this half needs.
  void mark_attention() { attention_ = kept_.size(); }
  // Drops what was kept after mark_attention.
  void keep_attention() {
    MEGALITH_ASSERT(attention_ > 0 && attention_ <= kept_.size(), "{} of {} tensors", attention_, kept_.size());
    kept_.resize(attention_);
  }
  bool empty() const { return kept_.empty(); }

  // Backward passes a function that adds to the gradient of a weight. It runs now, or in run_deferred if this tape defers
  // weight gradients. The function holds the tensors that it needs. They must not be written any more.
  void weight_gradient(std::function<void()> add) {
    if (defers_) products_.push_back(std::move(add));
    else add();
  }
  void run_deferred() {
    for (std::function<void()>& add : std::exchange(products_, {}))
      std::exchange(add, {})();  // frees its tensors when it is done
  }

 private:
  struct Kept {
    bool packed = false;
    PackedRows rows;
  };
  static const at::Tensor& look(const Kept& kept) {
    MEGALITH_ASSERT(!kept.packed, "packed tensors are only for backward");
    return kept.rows.numbers;
  }
  Packing packing_;
  bool defers_;
  std::vector<Kept> kept_;
  size_t attention_ = 0;  // number of tensors at the bottom that the attention half kept; 0: not marked
  std::vector<std::function<void()>> products_;
};

}  // namespace megalith
