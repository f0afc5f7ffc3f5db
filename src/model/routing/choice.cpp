#include "model/routing/choice.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

namespace megalith {
namespace {

template <class Real>
Real softplus(Real x) {
  return std::max(x, Real(0)) + std::log1p(std::exp(-std::abs(x)));
}

// Writes the probabilities of one token, and returns the log-sum-exp of its logits.
template <class Real>
Real softmax(const Real* logits, Real* out, int64_t n) {
  const Real largest = *std::max_element(logits, logits + n);
  Real sum = 0;
  for (int64_t e = 0; e < n; e++) sum += out[e] = std::exp(logits[e] - largest);
  for (int64_t e = 0; e < n; e++) out[e] /= sum;
  return largest + std::log(sum);
}

// Writes the indices of the `count` largest keys; among equals, the first. All indices are different, even if keys are NaN.
template <class Key>
void largest(const Key& key, int64_t n, int64_t count, int32_t* out) {
  for (int64_t j = 0; j < count; j++) {
    int32_t best = -1;
    for (int32_t e = 0; e < n; e++) {
      if (std::find(out, out + j, e) != out + j) continue;
      if (best < 0 || key(e) > key(best)) best = e;
    }
    out[j] = best;
  }
}

template <class Real>
void weigh(const RouterInput<Real>& in, int64_t token, Choice<Real>& c) {
  const int64_t E = in.experts->count;
  const Real* raw = in.logits.data() + token * in.width();
  Real* weight = c.weight.data() + token * E;
  if (in.experts->router == Router::sigmoid) {
    for (int64_t e = 0; e < E; e++) weight[e] = 1 / (1 + std::exp(-raw[e]));
    return;
  }
  const Real* logits = raw;
  if (in.experts->router == Router::noisy) {
    Real *spread = c.spread.data() + token * E, *noised = c.logit.data() + token * E;
    for (int64_t e = 0; e < E; e++) {
      spread[e] = softplus(raw[E + e]) + static_cast<Real>(kLeastSpread);
      noised[e] =
          in.noise.empty() ? raw[e] : raw[e] + static_cast<Real>(in.noise[static_cast<size_t>(token * E + e)]) * spread[e];
    }
    logits = noised;
  }
  c.log_sum[static_cast<size_t>(token)] = softmax(logits, weight, E);
}

template <class Real>
void pick(const RouterInput<Real>& in, int64_t token, Choice<Real>& c) {
  const int64_t E = in.experts->count, k = in.experts->top_k;
  const Real *weight = c.weight.data() + token * E, *logits = c.logits(in).data() + token * E;
  int32_t* chosen = c.expert.data() + token * c.chosen;
  // Chooses by logits: different logits may have the same weight 0.
  if (in.experts->router == Router::sigmoid)
    largest([&](int32_t e) { return weight[e] + static_cast<Real>(in.bias[static_cast<size_t>(e)]); }, E, c.chosen, chosen);
  else
    largest([&](int32_t e) { return logits[e]; }, E, c.chosen, chosen);
  Real sum = 0;
  for (int64_t j = 0; j < k; j++) sum += weight[chosen[j]];
  if (in.experts->router == Router::sigmoid) sum += static_cast<Real>(kLeastSum);
  for (int64_t j = 0; j < k; j++)
    c.gate[static_cast<size_t>(token * k + j)] = shares_gates(*in.experts) ? weight[chosen[j]] / sum : weight[chosen[j]];
}

}  // namespace

bool shares_gates(const Experts& x) {
  switch (x.router) {
    case Router::softmax:
    case Router::sigmoid: return x.normalise;
    case Router::noisy:
    case Router::gshard: return true;
    case Router::switch_:
    case Router::expert_choice: break;
  }
  return false;
}

template <class Real>
Choice<Real> choose(const RouterInput<Real>& in) {
  const Experts& x = *in.experts;
  const auto cells = static_cast<size_t>(in.tokens * x.count);
  Choice<Real> c;
  c.weight.resize(cells);
  if (x.router == Router::noisy) {
    c.logit.resize(cells);
    c.spread.resize(cells);
  }
  if (x.router != Router::sigmoid) c.log_sum.resize(static_cast<size_t>(in.tokens));
  if (x.router != Router::expert_choice) {
    c.chosen = x.top_k + (x.router == Router::noisy ? 1 : 0);
    c.expert.resize(static_cast<size_t>(in.tokens * c.chosen));
    c.gate.resize(static_cast<size_t>(in.tokens * x.top_k));
  }
  at::parallel_for(0, in.tokens, 64, [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; token++) {
      weigh(in, token, c);
      if (c.chosen > 0) pick(in, token, c);
    }
  });
  return c;
}

template Choice<float> choose(const RouterInput<float>&);
template Choice<double> choose(const RouterInput<double>&);

}  // namespace megalith
