// Owns the bytes of a model: per block one flat buffer of parameters, gradients and optimizer state each.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "config/config.h"
#include "model/block.h"
#include "optim/optimizer.h"

namespace megalith {

// A tensor by name, as views of the flat buffers: what checkpoints are made of.
struct NamedPart {
  std::string name;
  std::vector<int64_t> shape;
  std::span<float> values;
};

class ModelState {
 public:
  // `optimizer` null: parameters only (generation, evaluation). `precision`: what blocks compute in; master
  // values are always float32.
  ModelState(const ModelShape& shape, Precision precision, const Optimizer* optimizer);

  // Fresh weights: every element is a function of (seed, parameter, index).
  void initialise(uint64_t seed);
  // Call when the float32 values were written from outside (loading).
  void values_changed();

  size_t size() const { return blocks_.size(); }
  const ModelShape& shape() const { return shape_; }
  Block& block(BlockId id) { return *blocks_[static_cast<size_t>(id)].block; }
  EmbeddingBlock& embedding() { return static_cast<EmbeddingBlock&>(*blocks_.front().block); }
  HeadBlock& head() { return static_cast<HeadBlock&>(*blocks_.back().block); }

  std::vector<NamedPart> parameters(BlockId id);
  std::vector<NamedPart> gradients(BlockId id);
  std::vector<NamedPart> optimizer_state(BlockId id);
  int64_t optimizer_bytes(BlockId id) const;

  double gradient_squares(BlockId id) const;  // sum over the block, fixed order
  void update(BlockId id, const Optimizer& optimizer, const Update& update);
  void clear_gradient(BlockId id);

 private:
  struct Slot {
    std::string name;
    std::vector<int64_t> shape;
    int64_t offset = 0;  // elements, inside the optimizer's flat buffer
    int64_t size = 0;
  };
  struct State {
    std::unique_ptr<Block> block;
    at::Tensor values;     // float32 master
    at::Tensor computing;  // the same tensor, or a 16-bit copy
    at::Tensor gradients;  // float32; undefined without optimizer
    at::Tensor optimizer;  // float32
    std::vector<ParameterFacts> facts;       // by parameter
    std::vector<std::vector<Slot>> slots;    // by parameter
  };
  void allocate(State& state, const Optimizer* optimizer);
  ParameterSlice slice(State& state, size_t parameter) const;

  ModelShape shape_;
  at::ScalarType compute_type_;
  std::vector<State> blocks_;
};

at::ScalarType compute_type(Precision precision);

}  // namespace megalith
