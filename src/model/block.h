// A block computes on views of flat buffers that the engine owns. It knows nothing of schedules or disks, and of other
// ranks only those that it shares its work with.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "families/model_shape.h"
#include "families/block_spec.h"
#include "model/exchange.h"
#include "model/layers/linear.h"
#include "model/pass.h"
#include "model/tape.h"

namespace megalith {

class Block {
 public:
  Block(const ModelShape& shape, BlockSpec spec, const Exchanges& exchanges)
      : shape_(shape), spec_(std::move(spec)), exchanges_(exchanges) {}
  virtual ~Block() = default;

  // Points the weights at the flat buffers: `values` in the compute type (model/computing_buffer.h), `gradients` in
  // float32 (undefined when not training). The tensors are borrowed views; bind again when the buffers move.
  void bind(const at::Tensor& values, const at::Tensor& gradients);

  // Activation in, activation out, both [pass.rows(), hidden]. With a tape, leaves there what backward needs.
  virtual at::Tensor forward(const at::Tensor& x_NC, const Pass& pass, Tape* tape) = 0;
  // Forward again, for the tape alone: what only the output needs is left out. From the input, or, where the tape has
  // what a layer's attention half kept (the input first, the heads' output last), from that.
  virtual void recompute(const at::Tensor& x_NC, const Pass& pass, Tape& tape) { forward(x_NC, pass, &tape); }
  // Gradient of the output in, of the input out; adds the parameters' gradients.
  virtual at::Tensor backward(const at::Tensor& g_NC, const Pass& pass, Tape& tape) = 0;

  const BlockSpec& spec() const { return spec_; }
  // Parameters that this block does not have are another's, which outlives it and is bound first: gradients add up there.
  void use_weights_of(const Block& owner) { owner_ = &owner; }

 protected:
  // The parameter whose name ends so, as a view.
  Weight weight(const std::string& suffix) const;
  // Several parameters that join each other in the flat buffer, as one: rows added up.
  Weight joined(const std::string& first_suffix, const std::string& last_suffix) const;
  virtual void bind_weights() = 0;  // takes weight(...) views after bind

  ModelShape shape_;
  BlockSpec spec_;
  Exchanges exchanges_;

 private:
  at::Tensor values_, gradients_;
  const Block* owner_ = nullptr;
};

// The first block: ids to activations. Keeps its share of a tied table's gradient aside, as rows by id, until
// fold: the head's share is added first, whatever the schedule.
class EmbeddingBlock : public Block {
 public:
  using Block::Block;
  virtual Weight table() const = 0;  // [vocab, hidden]; what a tied head multiplies with
  virtual void fold() = 0;
};

// Of the rows of a rank of the context axis; the same on all ranks of the tensor axis.
struct LossSums {
  double loss = 0;        // sum over the targets, not scaled
  int64_t targets = 0;
};

// The last block: activations to loss, in chunks of rows whose size follows from the model alone; all logits
// never exist at once.
class HeadBlock : public Block {
 public:
  using Block::Block;
  // Called after bind when the model is tied.
  virtual void tie(const Weight& table) = 0;
  // Loss and, in one go, the gradient of x and of the parameters, scaled by pass.gradient_scale.
  virtual LossSums loss_and_gradient(const at::Tensor& x_NC, const Pass& pass, at::Tensor& gx_NC) = 0;
  // Loss alone; `each_N`, where given, receives the loss of every position here (0 without target).
  virtual LossSums loss(const at::Tensor& x_NC, const Pass& pass, at::Tensor* each_N = nullptr) = 0;
  virtual at::Tensor logits(const at::Tensor& x_RC) = 0;  // of a few rows; not where the vocabulary is split

  at::Tensor forward(const at::Tensor&, const Pass&, Tape*) final;   // a head has no output activation
  at::Tensor backward(const at::Tensor&, const Pass&, Tape&) final;  // loss_and_gradient has done it
};

}  // namespace megalith
