#include "model/routing/router.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "model/routing/balance.h"
#include "model/routing/choice.h"

namespace megalith {
namespace {

template <class Real>
void take_chosen(const RouterInput<Real>& in, const Choice<Real>& c, const TokenGroup& group, std::vector<uint8_t>& taken) {
  const Experts& x = *in.experts;
  const bool limited = x.capacity > 0 && !in.unlimited;
  std::vector<int64_t> left(static_cast<size_t>(x.count), limited ? room(x, x.capacity, group.count) : group.count);
  for (int64_t j = 0; j < x.top_k; j++)
    for (int64_t i = 0; i < group.count; i++) {
      const int64_t token = group.row(i);
      const int32_t expert = c.expert[static_cast<size_t>(token * c.chosen + j)];
      const bool drawn =
          x.router != Router::gshard || j == 0 || in.lots.empty() ||
          2 * c.gate[static_cast<size_t>(token * x.top_k + j)] > static_cast<Real>(in.lots[static_cast<size_t>(token)]);
      if (!drawn || left[static_cast<size_t>(expert)] == 0) continue;
      left[static_cast<size_t>(expert)]--;
      taken[static_cast<size_t>(token * x.count + expert)] = 1;
    }
}

// Every expert takes the tokens with the largest weight for it, among equals the first.
template <class Real>
void take_by_expert(const RouterInput<Real>& in, const Choice<Real>& c, const TokenGroup& group,
                    std::vector<uint8_t>& taken) {
  const Experts& x = *in.experts;
  const int64_t takes = std::min(group.count, room(x, x.capacity > 0 ? x.capacity : 1, group.count));
  std::vector<int64_t> order(static_cast<size_t>(group.count));
  for (int64_t e = 0; e < x.count; e++) {
    std::iota(order.begin(), order.end(), 0);
    auto weight = [&](int64_t i) {
      const Real w = c.weight[static_cast<size_t>(group.row(i) * x.count + e)];
      return w == w ? w : Real(-1);  // NaN comes last, so that the order is defined
    };
    std::partial_sort(order.begin(), order.begin() + takes, order.end(), [&](int64_t a, int64_t b) {
      const Real wa = weight(a), wb = weight(b);
      return wa != wb ? wa > wb : a < b;
    });
    for (int64_t i = 0; i < takes; i++)
      taken[static_cast<size_t>(group.row(order[static_cast<size_t>(i)]) * x.count + e)] = 1;
  }
}

// Returns [tokens, experts]: 1 if the token goes to the expert.
template <class Real>
std::vector<uint8_t> take(const RouterInput<Real>& in, const Choice<Real>& c) {
  std::vector<uint8_t> taken(static_cast<size_t>(in.tokens * in.experts->count), 0);
  at::parallel_for(0, std::ssize(in.groups), 8, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; g++) {
      const TokenGroup& group = in.groups[static_cast<size_t>(g)];
      if (in.experts->router == Router::expert_choice) take_by_expert(in, c, group, taken);
      else take_chosen(in, c, group, taken);
    }
  });
  return taken;
}

template <class Real>
Real gate_of(const RouterInput<Real>& in, const Choice<Real>& c, int64_t token, int64_t expert) {
  const int64_t k = in.experts->top_k;
  if (c.chosen == 0) return c.weight[static_cast<size_t>(token * in.experts->count + expert)];
  const int32_t* chosen = c.expert.data() + token * c.chosen;
  return c.gate[static_cast<size_t>(token * k + (std::find(chosen, chosen + k, expert) - chosen))];
}

// Sorts the rows by expert, and lists the rows of each token.
template <class Real>
void sort_rows(const RouterInput<Real>& in, const Choice<Real>& c, const std::vector<uint8_t>& taken, Routing<Real>& out) {
  const int64_t E = in.experts->count;
  out.begin.assign(static_cast<size_t>(E) + 1, 0);
  out.token_begin.assign(static_cast<size_t>(in.tokens) + 1, 0);
  for (int64_t token = 0; token < in.tokens; token++)
    for (int64_t e = 0; e < E; e++)
      if (taken[static_cast<size_t>(token * E + e)]) {
        out.begin[static_cast<size_t>(e) + 1]++;
        out.token_begin[static_cast<size_t>(token) + 1]++;
      }
  std::partial_sum(out.begin.begin(), out.begin.end(), out.begin.begin());
  std::partial_sum(out.token_begin.begin(), out.token_begin.end(), out.token_begin.begin());
  const auto rows = static_cast<size_t>(out.begin.back());
  out.token.resize(rows);
  out.gate.resize(rows);
  out.token_rows.resize(rows);
  std::vector<int64_t> next(out.begin.begin(), out.begin.end() - 1);
  size_t listed = 0;
  for (int64_t token = 0; token < in.tokens; token++)
    for (int64_t e = 0; e < E; e++) {
      if (!taken[static_cast<size_t>(token * E + e)]) continue;
      const int64_t row = next[static_cast<size_t>(e)]++;
      out.token[static_cast<size_t>(row)] = token;
      out.gate[static_cast<size_t>(row)] = gate_of(in, c, token, e);
      out.token_rows[listed++] = row;
    }
}

template <class Real>
void count_loads(const RouterInput<Real>& in, const Choice<Real>& c, Routing<Real>& out) {
  const Experts& x = *in.experts;
  out.load.assign(static_cast<size_t>(x.count), 0);
  for (int64_t token = 0; token < in.tokens && c.chosen > 0; token++)
    for (int64_t j = 0; j < x.top_k; j++)
      out.load[static_cast<size_t>(c.expert[static_cast<size_t>(token * c.chosen + j)])]++;
  if (c.chosen > 0) {
    out.dropped = in.tokens * x.top_k - out.rows();
    return;
  }
  for (int64_t e = 0; e < x.count; e++)
    out.load[static_cast<size_t>(e)] = out.begin[static_cast<size_t>(e) + 1] - out.begin[static_cast<size_t>(e)];
  for (int64_t token = 0; token < in.tokens; token++)
    out.dropped += out.token_begin[static_cast<size_t>(token) + 1] == out.token_begin[static_cast<size_t>(token)];
}

// Near log(experts), the router gives all experts the same weight. Near 0, it is sure of one.
template <class Real>
double entropy_of(const RouterInput<Real>& in, const Choice<Real>& c) {
  const int64_t E = in.experts->count;
  double all = 0;
  for (int64_t token = 0; token < in.tokens; token++) {
    const Real* weight = c.weight.data() + token * E;
    const double sum = std::accumulate(weight, weight + E, 0.0);
    for (int64_t e = 0; e < E; e++)
      if (const double share = weight[e] / sum; share > 0) all -= share * std::log(share);
  }
  return all;
}

}  // namespace

template <class Real>
Routing<Real> route(const RouterInput<Real>& in) {
  const Choice<Real> c = choose(in);
  Routing<Real> out;
  sort_rows(in, c, take(in, c), out);
  count_loads(in, c, out);
  for (const TokenGroup& group : in.groups)
    out.aux += static_cast<double>(Balance<Real>(in, c, group).loss) * static_cast<double>(group.count);
  for (Real sum : c.log_sum) out.z += static_cast<double>(sum) * static_cast<double>(sum);
  out.entropy = entropy_of(in, c);
  return out;
}

template Routing<float> route(const RouterInput<float>&);
template Routing<double> route(const RouterInput<double>&);

}  // namespace megalith
