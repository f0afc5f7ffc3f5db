#include <ATen/Parallel.h>

#include <cmath>

#include "model/routing/balance.h"
#include "model/routing/choice.h"
#include "model/routing/router.h"

namespace megalith {
namespace {

// Adds to the gradients of the weights, from the gradients of the gates.
template <class Real>
void gates_back(const RouterInput<Real>& in, const Choice<Real>& c, int64_t token, const Real* g_gate, Real* g_weight) {
  const Experts& x = *in.experts;
  if (c.chosen == 0) {
    for (int64_t e = 0; e < x.count; e++) g_weight[e] += g_gate[e];
    return;
  }
  const int32_t* chosen = c.expert.data() + token * c.chosen;
  const Real *gate = c.gate.data() + token * x.top_k, *weight = c.weight.data() + token * x.count;
  if (!shares_gates(x)) {
    for (int64_t j = 0; j < x.top_k; j++) g_weight[chosen[j]] += g_gate[chosen[j]];
    return;
  }
  Real sum = x.router == Router::sigmoid ? static_cast<Real>(kLeastSum) : 0, mean = 0;
  for (int64_t j = 0; j < x.top_k; j++) {
    sum += weight[chosen[j]];
    mean += gate[j] * g_gate[chosen[j]];
  }
  for (int64_t j = 0; j < x.top_k; j++) g_weight[chosen[j]] += (g_gate[chosen[j]] - mean) / sum;
}

// Writes the gradients of the logits of one token, from those of the weights. Leaves noise columns of `g_logit` unchanged.
template <class Real>
void weights_back(const RouterInput<Real>& in, const Choice<Real>& c, int64_t token, const Real* g_weight, double z_scale,
                  Real* g_logit) {
  const int64_t E = in.experts->count;
  const Real* weight = c.weight.data() + token * E;
  if (in.experts->router == Router::sigmoid) {
    for (int64_t e = 0; e < E; e++) g_logit[e] = g_weight[e] * weight[e] * (1 - weight[e]);
    return;
  }
  Real mean = 0;
  for (int64_t e = 0; e < E; e++) mean += weight[e] * g_weight[e];
  const Real z = static_cast<Real>(2 * z_scale) * c.log_sum[static_cast<size_t>(token)];
  for (int64_t e = 0; e < E; e++) g_logit[e] = weight[e] * (g_weight[e] - mean + z);
}

// Noisy router: carries gradients through the choice probabilities and the noise to both halves of the logits.
template <class Real>
void noise_back(const RouterInput<Real>& in, const Choice<Real>& c, int64_t token, const std::vector<Real>& by_load,
                Real scale, Real* g_logit) {
  const int64_t E = in.experts->count;
  const Real *raw = in.logits.data() + token * in.width(), *spread = c.spread.data() + token * E;
  std::vector<Real> g_noised(g_logit, g_logit + E), g_plain(static_cast<size_t>(E), 0), g_spread(static_cast<size_t>(E), 0);
  for (int32_t e = 0; e < E && !by_load.empty(); e++) {
    const auto [at, rival] = threshold(in, c, token, e);
    const Real density = std::exp(-at * at / 2) / std::sqrt(Real(2 * M_PI));
    const Real g = scale * by_load[static_cast<size_t>(e)] * density / spread[e];
    g_plain[static_cast<size_t>(e)] += g;
    g_noised[static_cast<size_t>(rival)] -= g;
    g_spread[static_cast<size_t>(e)] -= g * at;
  }
  for (int64_t e = 0; e < E; e++) {
    const auto i = static_cast<size_t>(e);
    const Real noise = in.noise.empty() ? 0 : static_cast<Real>(in.noise[static_cast<size_t>(token * E) + i]);
    g_logit[e] = g_plain[i] + g_noised[i];
    g_logit[E + e] = (g_spread[i] + g_noised[i] * noise) / (1 + std::exp(-raw[E + e]));
  }
}

}  // namespace

template <class Real>
std::vector<Real> route_backward(const RouterInput<Real>& in, const Routing<Real>& routing, std::span<const Real> g_gate,
                                 double loss_scale) {
  const Experts& x = *in.experts;
  const int64_t E = x.count;
  const Choice<Real> c = choose(in);
  std::vector<Real> g_gates(static_cast<size_t>(in.tokens * E), 0), g_logits(static_cast<size_t>(in.tokens * in.width()), 0);
  for (int64_t e = 0; e < E; e++)
    for (int64_t row = routing.begin[static_cast<size_t>(e)]; row < routing.begin[static_cast<size_t>(e) + 1]; row++)
      g_gates[static_cast<size_t>(routing.token[static_cast<size_t>(row)] * E + e)] = g_gate[static_cast<size_t>(row)];
  at::parallel_for(0, std::ssize(in.groups), 8, [&](int64_t begin, int64_t end) {
    std::vector<Real> g_weight(static_cast<size_t>(E));
    for (int64_t g = begin; g < end; g++) {
      const TokenGroup& group = in.groups[static_cast<size_t>(g)];
      const Balance<Real> balance(in, c, group);
      const Real scale = static_cast<Real>(x.aux_loss * loss_scale * static_cast<double>(group.count));
      for (int64_t i = 0; i < group.count; i++) {
        const int64_t token = group.row(i);
        Real *own = g_gates.data() + token * E, *g_logit = g_logits.data() + token * in.width();
        for (size_t e = 0; e < g_weight.size(); e++) {
          if (!balance.by_gate.empty()) own[e] += scale * balance.by_gate[e];
          g_weight[e] = balance.by_weight.empty() ? 0 : scale * balance.by_weight[e];
        }
        gates_back(in, c, token, own, g_weight.data());
        weights_back(in, c, token, g_weight.data(), x.z_loss * loss_scale, g_logit);
        if (x.router == Router::noisy) noise_back(in, c, token, balance.by_load, scale, g_logit);
      }
    }
  });
  return g_logits;
}

template std::vector<float> route_backward(const RouterInput<float>&, const Routing<float>&, std::span<const float>, double);
template std::vector<double> route_backward(const RouterInput<double>&, const Routing<double>&, std::span<const double>,
                                            double);

}  // namespace megalith
