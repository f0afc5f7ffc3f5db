// Compares a layer with experts to a dense layer (if all experts are the same), and to itself without capacities (if the
// capacities are large enough). Its results must not depend on the number of threads.
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "config/presets.h"
#include "families/blocks.h"
#include "model/support.h"
#include "model/tensor_ops.h"

namespace megalith {
namespace {
using namespace testing_support;

constexpr int64_t kSequences = 3, kLength = 21;

ModelShape shape_with(const Experts& experts) {
  ModelShape shape = default_shape(llama_family);
  shape.layers = 1;
  shape.hidden = 32;
  shape.heads = 4;
  shape.kv_heads = 2;
  shape.ffn = 40;
  shape.vocab = 50;
  shape.context = 64;
  shape.experts = experts;
  fill_defaults(shape);
  return shape;
}

// One layer and its buffers.
struct Layer {
  Layer(const Experts& experts, at::ScalarType type) : shape(shape_with(experts)), blocks(make_blocks(shape)) {
    const int64_t size = layer().spec().flat_size;
    values = tensor::zeros({size}, type);
    gradients = tensor::zeros({size}, type == at::kDouble ? at::kDouble : at::kFloat);
    layer().bind(values, gradients);
    pass.sequences = kSequences;
    pass.length = kLength;
    pass.explores = true;
    pass.seed = 3;
    pass.balance_scale = 0;
  }
  Block& layer() { return *blocks[1]; }
  at::Tensor part(const at::Tensor& flat, const ParameterSpec& p) { return flat.narrow(0, p.offset, p.size()); }

  // Fills each parameter by its name. With `all_experts_equal`, all experts get the same values.
  void fill(bool all_experts_equal) {
    for (const ParameterSpec& p : layer().spec().parameters) {
      std::string what = p.name;
      if (const size_t at = what.find("experts."); at != std::string::npos && all_experts_equal)
        what = what.substr(what.find('.', at + 8) + 1);
      static const std::map<std::string, std::string> dense{{"w1.weight", "mlp.gate_proj.weight"},
                                                            {"w3.weight", "mlp.up_proj.weight"},
                                                            {"w2.weight", "mlp.down_proj.weight"}};
      if (dense.contains(what)) what = "model.layers.0." + dense.at(what);
      const auto item = static_cast<uint64_t>(std::hash<std::string>{}(what) % 100000);
      part(values, p).copy_(normal({p.size()}, item).mul_(p.shape.size() == 2 ? 0.2 : 0.1).add_(p.initial));
    }
  }

  std::pair<at::Tensor, at::Tensor> run() {
    const auto type = values.scalar_type();
    Tape tape;
    at::Tensor y = layer().forward(normal({kSequences * kLength, shape.hidden}, 5).to(type), pass, &tape);
    at::Tensor gx = layer().backward(normal({kSequences * kLength, shape.hidden}, 6).to(type), pass, tape);
    EXPECT_TRUE(tape.empty());
    return {y, gx};
  }

  c10::InferenceMode no_graph;
  ModelShape shape;
  std::vector<std::unique_ptr<Block>> blocks;
  at::Tensor values, gradients;
  Pass pass;
};

Experts softmax(int64_t count, int64_t top_k) {
  Experts x;
  x.count = count;
  x.top_k = top_k;
  return x;
}

// The gradients of a dense feed-forward are the sums of the experts' gradients.
void expect_dense(const Experts& experts) {
  for (at::ScalarType type : {at::kDouble, at::kFloat}) {
    const double bound = type == at::kDouble ? 1e-12 : 2e-5;
    Layer sparse(experts, type), dense(Experts{}, type);
    sparse.fill(true);
    dense.fill(true);
    const auto [y, gx] = sparse.run();
    const auto [y_dense, gx_dense] = dense.run();
    EXPECT_LT(distance(y, y_dense), bound);
    EXPECT_LT(distance(gx, gx_dense), bound);
    const std::map<std::string, std::string> names{{"mlp.gate_proj.weight", ".w1.weight"},
                                                   {"mlp.up_proj.weight", ".w3.weight"},
                                                   {"mlp.down_proj.weight", ".w2.weight"}};
    for (const ParameterSpec& p : dense.layer().spec().parameters) {
      at::Tensor wanted = dense.part(dense.gradients, p), sum = tensor::zeros_like(wanted);
      for (const ParameterSpec& q : sparse.layer().spec().parameters) {
        bool same = q.name == p.name;
        for (const auto& [whole, each] : names) same = same || (p.name.ends_with(whole) && q.name.ends_with(each));
        if (same) sum.add_(sparse.part(sparse.gradients, q));
      }
      EXPECT_LT(distance(sum, wanted), bound) << p.name;
    }
  }
}

TEST(Experts, OneIsADenseLayer) { expect_dense(softmax(1, 1)); }
TEST(Experts, EqualOnesAreADenseLayer) { expect_dense(softmax(6, 2)); }
TEST(Experts, EqualOnesWithNoiseAreADenseLayer) {
  Experts x = softmax(5, 2);
  x.router = Router::noisy;
  x.aux_loss = 0;
  expect_dense(x);
}

TEST(Experts, CapacityWithoutEndDropsNothing) {
  for (Router router : {Router::softmax, Router::noisy, Router::gshard, Router::sigmoid}) {
    Experts x = softmax(5, 2);
    x.router = router;
    Layer free(x, at::kFloat);
    x.capacity = 1e6;
    Layer limited(x, at::kFloat);
    free.fill(false);
    limited.fill(false);
    const auto [y, gx] = free.run();
    const auto [y_limited, gx_limited] = limited.run();
    EXPECT_TRUE(y.equal(y_limited));
    EXPECT_TRUE(gx.equal(gx_limited));
    EXPECT_TRUE(free.gradients.equal(limited.gradients));
  }
}

TEST(Experts, WhatIsDroppedPassesByTheResidual) {
  Experts x = softmax(4, 1);
  x.capacity = 0.2;
  x.group = 4;  // each expert takes one token of four
  Layer layer(x, at::kDouble);
  layer.fill(false);
  RoutingRecord record(1);
  layer.pass.routing = &record;
  // Attention adds 0, so the residual is the input.
  for (const ParameterSpec& p : layer.layer().spec().parameters)
    if (p.name.ends_with("o_proj.weight")) layer.part(layer.values, p).zero_();
  const at::Tensor in = normal({kSequences * kLength, layer.shape.hidden}, 5);
  const at::Tensor y = layer.layer().forward(in, layer.pass, nullptr);
  int64_t same = 0;
  for (int64_t n = 0; n < in.size(0); n++) same += y.select(0, n).equal(in.select(0, n));
  EXPECT_EQ(same, record[0].dropped);
  EXPECT_GT(same, 0);
}

TEST(Experts, RecomputationTakesTheSameWay) {
  for (Router router : {Router::softmax, Router::noisy, Router::gshard}) {
    Experts x = softmax(5, 2);
    x.router = router;
    Layer layer(x, at::kFloat);
    layer.fill(false);
    RoutingRecord record(1);
    layer.pass.routing = &record;
    const at::Tensor in = normal({kSequences * kLength, layer.shape.hidden}, 5, at::kFloat);
    const at::Tensor g = normal({kSequences * kLength, layer.shape.hidden}, 6, at::kFloat);
    Tape kept, remade;
    layer.layer().forward(in, layer.pass, &kept);
    const at::Tensor gx = layer.layer().backward(g, layer.pass, kept);
    const at::Tensor gradients = layer.gradients.clone();
    layer.gradients.zero_();
    layer.layer().recompute(in, layer.pass, remade);
    EXPECT_TRUE(layer.layer().backward(g, layer.pass, remade).equal(gx));
    EXPECT_TRUE(layer.gradients.equal(gradients));
    // Other tokens would go to other experts: the layer must notice this.
    Tape other;
    EXPECT_THROW(layer.layer().forward(g, layer.pass, &other), Bug);
  }
}

// Zero bubble: the bits are the same, and expert gradients stay 0 until run_deferred.
TEST(Experts, WeightProductsThatArePutOffAreTheSame) {
  Experts x = softmax(5, 2);
  x.shared = 24;
  Layer layer(x, at::kFloat);
  layer.fill(false);
  const auto [y, gx] = layer.run();
  const at::Tensor gradients = layer.gradients.clone();
  layer.gradients.zero_();
  Tape tape(Packing::fp32, true);
  const at::Tensor in = normal({kSequences * kLength, layer.shape.hidden}, 5, at::kFloat);
  const at::Tensor g = normal({kSequences * kLength, layer.shape.hidden}, 6, at::kFloat);
  layer.layer().forward(in, layer.pass, &tape);
  EXPECT_TRUE(layer.layer().backward(g, layer.pass, tape).equal(gx));
  for (const ParameterSpec& p : layer.layer().spec().parameters)
    if (p.of_expert) EXPECT_EQ(layer.part(layer.gradients, p).count_nonzero().item<int64_t>(), 0) << p.name;
  tape.run_deferred();
  EXPECT_TRUE(layer.gradients.equal(gradients));
}

TEST(Experts, ARowAloneIsAsInCompany) {  // generation
  Layer layer(softmax(4, 2), at::kFloat);
  layer.fill(false);
  const at::Tensor in = normal({6, layer.shape.hidden}, 5, at::kFloat);
  layer.pass.sequences = 6;
  layer.pass.length = 1;
  const at::Tensor all = layer.layer().forward(in, layer.pass, nullptr);
  layer.pass.sequences = 1;
  for (int64_t n = 0; n < 6; n++)
    EXPECT_TRUE(layer.layer().forward(in.narrow(0, n, 1).contiguous(), layer.pass, nullptr).equal(all.narrow(0, n, 1)));
}

TEST(Experts, ParametersOfAnExpertLieTogetherAfterAllOthers) {
  Experts x = softmax(4, 2);
  x.shared = 24;
  for (const auto& block : make_blocks(shape_with(x))) {
    if (block->spec().kind != BlockKind::layer) continue;
    const auto& all = block->spec().parameters;
    const size_t first = all.size() - 12;
    for (size_t i = 0; i < all.size(); i++) {
      EXPECT_EQ(all[i].name.find(".experts.") != std::string::npos, i >= first) << all[i].name;
      if (i > first) {  // an expert begins a page
        const int64_t gap = all[i].offset - all[i - 1].offset - all[i - 1].size();
        EXPECT_LT(gap, (i - first) % 3 == 0 ? kPartAlign : kFlatAlign);
      }
      if (i >= first && (i - first) % 3 == 0) {
        EXPECT_EQ(all[i].offset % kPartAlign, 0);
      }
    }
    EXPECT_NE(all[first + 3].name.find("experts.1.gate_proj"), std::string::npos);
  }
}

// If layers share weights, one layer is like a plain one. With several, gradients add up in the buffer of the first.
TEST(Experts, SharedByLayersAreTheFirstOnes) {
  Experts x = softmax(4, 2);
  ModelShape plain = shape_with(x);
  x.share_layers = true;
  ModelShape shared = shape_with(x);
  const auto names = [](const ModelShape& shape) {
    std::vector<std::pair<std::string, int64_t>> all;
    for (const BlockSpec& block : list_blocks(shape))
      for (const ParameterSpec& p : block.parameters) {
        std::string name = p.name;  // Hugging Face has no class that shares, so the names are the general ones of experts
        for (auto [from, to] :
             {std::pair{"block_sparse_moe", "mlp"}, {"w1", "gate_proj"}, {"w2", "down_proj"}, {"w3", "up_proj"}})
          if (const size_t at = name.find(from); at != std::string::npos) name.replace(at, std::string(from).size(), to);
        all.emplace_back(name, p.offset);
      }
    return all;
  };
  EXPECT_EQ(names(shared), names(plain));
  Layer one(plain.experts, at::kFloat), other(shared.experts, at::kFloat);
  one.values.copy_(normal({one.values.numel()}, 9, at::kFloat).mul_(0.2));
  other.values.copy_(one.values);
  EXPECT_TRUE(one.run().first.equal(other.run().first));
  EXPECT_TRUE(one.gradients.equal(other.gradients));
  shared.layers = 3;
  const auto blocks = list_blocks(shared);
  EXPECT_EQ(blocks[2].parameters.size(), 2u);
  EXPECT_EQ(blocks[3].parameters.size(), 2u);
  int64_t sum = 0;
  for (const BlockSpec& block : blocks)
    for (const ParameterSpec& p : block.parameters) sum += p.size();
  EXPECT_EQ(sum, parameter_count(shared));
}

TEST(Experts, CountTheirParameters) {
  for (Router router : {Router::softmax, Router::noisy, Router::sigmoid}) {
    Experts x = softmax(4, 2);
    x.router = router;
    x.shared = 24;
    x.every = 2;
    ModelShape shape = shape_with(x);
    shape.layers = 5;
    int64_t sum = 0;
    for (const BlockSpec& block : list_blocks(shape))
      for (const ParameterSpec& p : block.parameters) sum += p.size();
    EXPECT_EQ(sum, parameter_count(shape));
  }
}

}  // namespace
}  // namespace megalith
