// What every token wants: the weight of each expert for it, and the experts it chooses.
#pragma once
#include <cstdint>
#include <vector>

#include "model/routing/router.h"

namespace megalith {

template <class Real>
struct Choice {
  std::vector<Real> logit;       // [tokens, experts]: noisy: with noise; else empty, as they came
  std::vector<Real> spread;      // [tokens, experts]: noisy: deviation of its noise
  std::vector<Real> weight;      // [tokens, experts]: softmax or sigmoid
  std::vector<Real> log_sum;     // [tokens]: log-sum-exp of the logits
  std::vector<int32_t> expert;   // [tokens, chosen]: the largest first
  std::vector<Real> gate;        // [tokens, top_k]: weights as the experts' results get them
  int64_t chosen = 0;            // top_k; noisy: one more, the first that was not taken; expert choice: none

  std::span<const Real> logits(const RouterInput<Real>& in) const { return logit.empty() ? in.logits : logit; }
};

template <class Real>
Choice<Real> choose(const RouterInput<Real>& in);

// Whether weights are shares of those that were chosen. Their sum is then at least this much more than nothing.
bool shares_gates(const Experts& experts);
inline constexpr double kLeastSum = 1e-20;

// Shazeer's noise never vanishes, as loads are divided by its size.
inline constexpr double kLeastSpread = 1e-2;

}  // namespace megalith
