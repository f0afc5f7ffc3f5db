// What one block's forward leaves for its backward, as a stack: backward takes tensors in the reverse order and
// so frees each as soon as it is used. Activations are thus data that the engine can count, pack and rebuild, with no
// graph behind them. Matrices of float32 may be kept packed; what else there is (log-sum-exps) is kept as it is.
// Of a backward in two halves, the second half's products wait here as well.
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
  // What was kept first and last, to look at; of a tape that packs nothing.
  const at::Tensor& first() const { return look(kept_.front()); }
  const at::Tensor& last() const { return look(kept_.back()); }
  // A layer says that its attention half has kept all that its own backward needs.
  void mark_attention() { attention_ = kept_.size(); }
  // Forgets what was kept after that.
  void keep_attention() {
    MEGALITH_ASSERT(attention_ > 0 && attention_ <= kept_.size(), "{} of {} tensors", attention_, kept_.size());
    kept_.resize(attention_);
  }
  bool empty() const { return kept_.empty(); }

  // Backward adds to a weight's gradient: now, or, on a tape that puts such products off, when run_deferred is called. It holds
  // the tensors that it needs; nobody may write to them any more.
  void weight_gradient(std::function<void()> add) {
    if (defers_) products_.push_back(std::move(add));
    else add();
  }
  void run_deferred() {
    for (std::function<void()>& add : std::exchange(products_, {}))
      std::exchange(add, {})();  // each is freed when it is done
  }

 private:
  struct Kept {
    bool packed = false;
    PackedRows rows;
  };
  static const at::Tensor& look(const Kept& kept) {
    MEGALITH_ASSERT(!kept.packed, "rounded numbers are backward's alone");
    return kept.rows.numbers;
  }
  Packing packing_;
  bool defers_;
  std::vector<Kept> kept_;
  size_t attention_ = 0;  // tensors of the attention half, the first on the tape; 0: no layer has marked them
  std::vector<std::function<void()>> products_;
};

}  // namespace megalith
