#include "model/routing/balance.h"

#include <algorithm>
#include <cmath>

namespace megalith {
namespace {

// Returns variance / mean², and writes its derivatives to `by_value`.
template <class Real>
Real variation(const std::vector<Real>& values, std::vector<Real>& by_value) {
  const Real n = static_cast<Real>(values.size());
  Real mean = 0, variance = 0;
  for (Real v : values) mean += v / n;
  for (Real v : values) variance += (v - mean) * (v - mean) / n;
  const Real square = mean * mean + static_cast<Real>(1e-10);
  for (size_t e = 0; e < values.size(); e++)
    by_value[e] = 2 * (values[e] - mean) / (n * square) - variance * 2 * mean / (n * square * square);
  return variance / square;
}

}  // namespace

template <class Real>
Threshold<Real> threshold(const RouterInput<Real>& in, const Choice<Real>& c, int64_t token, int32_t expert) {
  const int64_t E = in.experts->count, k = in.experts->top_k;
  const int32_t* chosen = c.expert.data() + token * c.chosen;
  // The k-th largest logit of the other experts. If `expert` was chosen, this is the largest logit that was not chosen.
  const bool taken = std::find(chosen, chosen + k, expert) != chosen + k;
  const int32_t rival = chosen[taken ? k : k - 1];
  const Real plain = in.logits[static_cast<size_t>(token * in.width() + expert)];
  return {(plain - c.logit[static_cast<size_t>(token * E + rival)]) / c.spread[static_cast<size_t>(token * E + expert)],
          rival};
}

template <class Real>
Balance<Real>::Balance(const RouterInput<Real>& in, const Choice<Real>& c, const TokenGroup& group) {
  const Experts& x = *in.experts;
  const auto E = static_cast<size_t>(x.count);
  const Real n = static_cast<Real>(group.count);
  if (!x.has_losses() || group.count == 0) return;
  if (x.router == Router::noisy) {
    if (in.noise.empty()) return;
    std::vector<Real> importance(E, 0), load(E, 0);
    by_gate.assign(E, 0);
    by_load.assign(E, 0);
    for (int64_t i = 0; i < group.count; i++) {
      const int64_t token = group.row(i);
      for (int64_t j = 0; j < x.top_k; j++)
        importance[static_cast<size_t>(c.expert[static_cast<size_t>(token * c.chosen + j)])] +=
            c.gate[static_cast<size_t>(token * x.top_k + j)];
      for (size_t e = 0; e < E; e++)
        load[e] += std::erfc(-threshold(in, c, token, static_cast<int32_t>(e)).argument / std::sqrt(Real(2))) / 2;
    }
    loss = variation(importance, by_gate) + variation(load, by_load);
    return;
  }
  const int64_t counted = x.router == Router::softmax ? x.top_k : 1;
  std::vector<Real> mean(E, 0);
  by_weight.assign(E, 0);
  for (int64_t i = 0; i < group.count; i++) {
    const int64_t token = group.row(i);
    for (int64_t j = 0; j < counted; j++)
      by_weight[static_cast<size_t>(c.expert[static_cast<size_t>(token * c.chosen + j)])] +=
          static_cast<Real>(x.count) / (n * n);
    for (size_t e = 0; e < E; e++) mean[e] += c.weight[static_cast<size_t>(token) * E + e];
  }
  for (size_t e = 0; e < E; e++) loss += by_weight[e] * mean[e];
}

template struct Balance<float>;
template struct Balance<double>;
template Threshold<float> threshold(const RouterInput<float>&, const Choice<float>&, int64_t, int32_t);
template Threshold<double> threshold(const RouterInput<double>&, const Choice<double>&, int64_t, int32_t);

}  // namespace megalith
