// The choice of every token: the weight of each expert for it, and the experts that it chooses.
#pragma once
#include <cstdint>
#include <vector>

#include "model/routing/router.h"

namespace megalith {

template <class Real>
struct Choice {
  std::vector<Real> logit;       // [tokens, experts]: logits with noise; only for noisy, otherwise empty
  std::vector<Real> spread;      // [tokens, experts]: standard deviation of the noise; only for noisy
  std::vector<Real> weight;      // [tokens, experts]: softmax or sigmoid
  std::vector<Real> log_sum;     // [tokens]: log-sum-exp of the logits
  std::vector<int32_t> expert;   // [tokens, chosen]: largest logit (sigmoid: weight plus bias) first
  std::vector<Real> gate;        // [tokens, top_k]: factors of the experts' results
  int64_t chosen = 0;            // top_k; noisy: one more, the first expert that is not taken; expert choice: 0

  std::span<const Real> logits(const RouterInput<Real>& in) const { return logit.empty() ? in.logits : logit; }
};

template <class Real>
Choice<Real> choose(const RouterInput<Real>& in);

// True if gates are the weights divided by the sum of the chosen weights. The sigmoid router adds kLeastSum to this sum, so
// that it is never 0.
bool shares_gates(const Experts& experts);
inline constexpr double kLeastSum = 1e-20;

// Smallest standard deviation of the noisy router's noise. It is never 0, because loads are divided by it.
inline constexpr double kLeastSpread = 1e-2;

}  // namespace megalith
