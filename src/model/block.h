// A block computes on views of flat buffers that the engine owns. It knows nothing about schedules or disks. The only other
// ranks that it knows are those that share its work.
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

  // Takes and returns an activation, both [pass.rows(), hidden]. If `tape` is not null, keeps there what backward needs.
  virtual at::Tensor forward(const at::Tensor& x_NC, const Pass& pass, Tape* tape) = 0;
  // Runs forward again, only to fill the tape. Skips the work that only the output needs. If the tape already has the
  // tensors that a layer's attention half keeps (first the input, last the output of the heads), computes only the other
  // half.
  virtual void recompute(const at::Tensor& x_NC, const Pass& pass, Tape& tape) { forward(x_NC, pass, &tape); }
  // Takes the gradient of the output and returns the gradient of the input. Adds to the gradients of the parameters.
  virtual at::Tensor backward(const at::Tensor& g_NC, const Pass& pass, Tape& tape) = 0;

  const BlockSpec& spec() const { return spec_; }
  // Makes `owner` provide the parameters that this block does not have. Their gradients add up in the buffer of `owner`.
  // `owner` must outlive this block and must be bound first.
  void use_weights_of(const Block& owner) { owner_ = &owner; }

 protected:
  // Returns the parameter whose name ends with `suffix`, as a view.
  Weight weight(const std::string& suffix) const;
  // Returns neighbouring parameters of the flat buffer, from the first to the last, as one view with the rows of all.
  Weight joined(const std::string& first_suffix, const std::string& last_suffix) const;
  virtual void bind_weights() = 0;  // takes weight(...) views after bind

  ModelShape shape_;
  BlockSpec spec_;
  Exchanges exchanges_;

 private:
  at::Tensor values_, gradients_;
  const Block* owner_ = nullptr;
};

// The first block: turns token ids into activations. With a tied table it keeps its own gradient apart, as rows by id,
// until fold. So the gradient of the head is added first under every schedule.
class EmbeddingBlock : public Block {
 public:
  using Block::Block;
  virtual Weight table() const = 0;  // [vocab, hidden]; a tied head multiplies with it
  virtual void fold() = 0;
};

// Loss of the rows that one rank of the context axis holds. All ranks of the tensor axis have the same sums.
struct LossSums {
  double loss = 0;        // sum over the targets, not scaled
  int64_t targets = 0;
};

// The last block. With HeadKind::vocabulary, it turns activations into the loss, in chunks of rows. The chunk size depends only
// on the model. So only the logits of one chunk exist at a time. With HeadKind::representation, it pools them.
class HeadBlock : public Block {
 public:
  using Block::Block;
  // Called after bind if the model has a tied table.
  virtual void tie(const Weight& table) = 0;
  // Computes the loss and, chunk by chunk, the gradients of x and of the parameters, scaled by pass.gradient_scale.
  virtual LossSums loss_and_gradient(const at::Tensor& x_NC, const Pass& pass, at::Tensor& gx_NC) = 0;
  // Computes only the loss. `each_N`, if not null, receives the loss of every position on this rank (0 without a target).
  virtual LossSums loss(const at::Tensor& x_NC, const Pass& pass, at::Tensor* each_N = nullptr) = 0;
  // Returns the logits of a few rows. Not available if the vocabulary is split over ranks.
  virtual at::Tensor logits(const at::Tensor& x_RC) = 0;

  // Returns the representations of the sequences, in float32, the same on all ranks that share them.
  at::Tensor represent(const at::Tensor& x_NC, const Pass& pass);
  // Returns the gradient of x. Adds to the gradients of the parameters.
  at::Tensor represent_backward(const at::Tensor& g_BC, const at::Tensor& x_NC, const Pass& pass);

  at::Tensor forward(const at::Tensor&, const Pass&, Tape*) final;   // a head has no output activation
  at::Tensor backward(const at::Tensor&, const Pass&, Tape&) final;  // loss_and_gradient does it

 protected:
  // What is pooled: the output of the last layer, or its norm.
  virtual at::Tensor outputs(const at::Tensor& x_NC) { return x_NC; }
  virtual at::Tensor outputs_backward(const at::Tensor& g_NC, const at::Tensor&) { return g_NC; }
};

}  // namespace megalith
