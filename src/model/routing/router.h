// Routers as functions of logits: which token passes which expert with what weight, the losses that keep experts busy
// alike, and the gradients of both. Random numbers come in from outside, so that a router is a function and nothing else.
//
//   softmax        the k largest; weights softmax, over the k chosen or over all (Mixtral, Qwen2-MoE)
//   noisy          the k largest after normal noise of learned size; weights softmax over those (Shazeer et al. 2017)
//   switch         the largest; weight its softmax (Fedus et al. 2021)
//   gshard         the two largest, the second with a probability of twice its weight (Lepikhin et al. 2020)
//   expert_choice  every expert takes the tokens that want it most; weight softmax (Zhou et al. 2022)
//   sigmoid        the k largest sigmoids after a bias is added; weights sigmoids, over their sum (DeepSeek-V3)
//
// Of equals, the first comes first. In a group an expert takes at most ceil(capacity * k * tokens / experts): first
// choices in the order of the tokens, then second ones, and so on; weights of what is dropped are not given to others.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "families/model_shape.h"
#include "model/routing/groups.h"

namespace megalith {

template <class Real>
struct RouterInput {
  const Experts* experts = nullptr;
  int64_t tokens = 0;
  std::span<const Real> logits;       // [tokens, width]: of every expert; noisy: then what its noise is the softplus of
  std::vector<TokenGroup> groups;     // every token is in one
  std::vector<float> bias;            // sigmoid: by expert
  std::vector<float> noise;           // noisy: [tokens, experts] standard normals; empty: there is none
  std::vector<float> lots;            // gshard: [tokens] in [0, 1); empty: second experts are always taken
  bool unlimited = false;             // capacities are not looked at

  int64_t width() const { return router_width(*experts); }
};

// Rows of the experts' work: those of the first expert, then of the second, ..., each expert's in the order of the tokens.
template <class Real>
struct Routing {
  std::vector<int64_t> begin;         // by expert, and the end: its rows are [begin[e], begin[e + 1])
  std::vector<int64_t> token;         // by row
  std::vector<Real> gate;             // by row: weight of its result
  std::vector<int64_t> token_begin;   // by token, and the end: its rows are token_rows[token_begin[t]], ...
  std::vector<int64_t> token_rows;    // rising
  // Sums over the tokens: a group's balancing loss counts as often as it has tokens.
  double aux = 0, z = 0;
  double entropy = 0;                 // of the shares that a token's weights are of their sum, in nats
  std::vector<int64_t> load;          // by expert: how many chose it
  int64_t dropped = 0;                // choices that found no room, or whose lot said no
  int64_t rows() const { return static_cast<int64_t>(token.size()); }
};

template <class Real>
Routing<Real> route(const RouterInput<Real>& in);

// Gradient of the logits, [tokens, width], from that of the rows' gates; `loss_scale` times what aux_loss and z_loss say
// of the sums above is added.
template <class Real>
std::vector<Real> route_backward(const RouterInput<Real>& in, const Routing<Real>& routing, std::span<const Real> g_gate,
                                 double loss_scale);

}  // namespace megalith
