// Routers as pure functions of logits. A router decides which experts process a token and with which weights, and computes
// the balancing losses and all gradients. Random numbers are arguments.
//
//   softmax        the k largest; weights softmax, over the k chosen or over all (Mixtral, Qwen2-MoE)
//   noisy          the k largest after normal noise of learned size; weights softmax over those (Shazeer et al. 2017)
//   switch         the largest; weight its softmax (Fedus et al. 2021)
//   gshard         the two largest, the second with a probability of twice its weight (Lepikhin et al. 2020)
//   expert_choice  every expert takes the tokens that want it most; weight softmax (Zhou et al. 2022)
//   sigmoid        the k largest sigmoids after a bias is added; weights sigmoids, over their sum (DeepSeek-V3)
//
// Among equals, the first wins. An expert takes at most ceil(capacity * k * tokens / experts) tokens of a group. It takes
// first choices in the order of the tokens, then second choices, and so on. The weight of a dropped choice is lost: it does
// not go to other experts.
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
  std::span<const Real> logits;       // [tokens, width]: one per expert; noisy: then one per expert for its noise
  std::vector<TokenGroup> groups;     // every token is in exactly one
  std::vector<float> bias;            // sigmoid: by expert
  std::vector<float> noise;           // noisy: [tokens, experts] standard normals; empty: no noise
  std::vector<float> lots;            // gshard: [tokens] in [0, 1); empty: second experts are always taken
  bool unlimited = false;             // ignores capacities

  int64_t width() const { return router_width(*experts); }
};

// The rows that the experts compute: those of the first expert, then those of the second, and so on. The rows of an expert
// are in the order of the tokens.
template <class Real>
struct Routing {
  std::vector<int64_t> begin;         // experts + 1 offsets: the rows of expert e are [begin[e], begin[e + 1])
  std::vector<int64_t> token;         // by row
  std::vector<Real> gate;             // by row: weight of its result
  std::vector<int64_t> token_begin;   // tokens + 1 offsets into token_rows
  std::vector<int64_t> token_rows;    // the rows of token t are [token_begin[t], token_begin[t + 1]) of this, rising
  // Losses, summed over the tokens: the balancing loss of a group is multiplied by its number of tokens.
  double aux = 0, z = 0;
  double entropy = 0;                 // entropy of a token's weights, divided by their sum; summed over the tokens, in nats
  std::vector<int64_t> load;          // by expert: how many tokens chose it
  int64_t dropped = 0;                // choices beyond the capacity or not drawn; expert choice: tokens without expert
  int64_t rows() const { return static_cast<int64_t>(token.size()); }
};

template <class Real>
Routing<Real> route(const RouterInput<Real>& in);

// Returns the gradient of the logits, [tokens, width], from the gradient of the rows' gates. Adds the gradient of
// `loss_scale` * (aux_loss * aux + z_loss * z).
template <class Real>
std::vector<Real> route_backward(const RouterInput<Real>& in, const Routing<Real>& routing, std::span<const Real> g_gate,
                                 double loss_scale);

}  // namespace megalith
