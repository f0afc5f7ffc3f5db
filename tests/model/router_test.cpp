// Compares every router with its formula, written naively in float64: choices, weights, losses, and gradients by finite
// differences. Also tests ties, numbers at the end of their range, and groups.
#include "model/routing/router.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "model/routing/record.h"
#include "model/support.h"

namespace megalith {
namespace {
using namespace testing_support;

using Table = std::vector<std::vector<double>>;  // [token][expert]

struct Naive {
  Table gate;             // 0 if the token does not go to the expert
  double aux = 0, z = 0, entropy = 0;  // sums over tokens
  std::vector<int64_t> load;
};

Table table(std::span<const double> numbers, int64_t rows, int64_t columns, int64_t first, int64_t count) {
  Table out(static_cast<size_t>(rows));
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < count; c++)
      out[static_cast<size_t>(r)].push_back(numbers[static_cast<size_t>(r * columns + first + c)]);
  return out;
}

std::vector<double> softmax(const std::vector<double>& x) {
  double sum = 0;
  const double largest = *std::max_element(x.begin(), x.end());
  for (double v : x) sum += std::exp(v - largest);
  std::vector<double> p;
  for (double v : x) p.push_back(std::exp(v - largest) / sum);
  return p;
}

// Returns indices by decreasing value, among equals the first.
std::vector<size_t> ranking(const std::vector<double>& x) {
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return x[a] > x[b]; });
  return order;
}

double squared_variation(const std::vector<double>& v) {
  const auto n = static_cast<double>(v.size());
  double mean = 0, squares = 0;
  for (double x : v) mean += x / n;
  for (double x : v) squares += x * x / n;
  return (squares - mean * mean) / (mean * mean + 1e-10);
}

Naive reference(const RouterInput<double>& in) {
  const Experts& x = *in.experts;
  const auto E = static_cast<size_t>(x.count), k = static_cast<size_t>(x.top_k);
  const Table plain = table(in.logits, in.tokens, in.width(), 0, x.count);
  Table logits = plain, spread = plain, weight = plain;
  if (x.router == Router::noisy) {
    const Table raw = table(in.logits, in.tokens, in.width(), x.count, x.count);
    for (size_t t = 0; t < plain.size(); t++)
      for (size_t e = 0; e < E; e++) {
        spread[t][e] = std::log(1 + std::exp(raw[t][e])) + 0.01;
        if (!in.noise.empty()) logits[t][e] += static_cast<double>(in.noise[t * E + e]) * spread[t][e];
      }
  }
  Naive out;
  out.load.assign(E, 0);
  out.gate.assign(plain.size(), std::vector<double>(E, 0));
  for (size_t t = 0; t < plain.size(); t++) {
    weight[t] = softmax(logits[t]);
    if (x.router == Router::sigmoid)
      for (size_t e = 0; e < E; e++) weight[t][e] = 1 / (1 + std::exp(-plain[t][e]));
    double weights = 0;
    for (double w : weight[t]) weights += w;
    for (double w : weight[t]) out.entropy -= w / weights * std::log(w / weights);
    double sum = 0;
    for (double l : logits[t]) sum += std::exp(l - logits[t][0]);
    if (x.router != Router::sigmoid) out.z += std::pow(logits[t][0] + std::log(sum), 2);
  }
  for (const TokenGroup& group : in.groups) {
    const auto n = static_cast<double>(group.count);
    const double even = static_cast<double>(k) * n / static_cast<double>(E);
    if (x.router == Router::expert_choice) {
      const auto takes =
          static_cast<size_t>(std::min(n, std::max(1.0, std::ceil((x.capacity > 0 ? x.capacity : 1) * even - 1e-9))));
      for (size_t e = 0; e < E; e++) {
        std::vector<double> wants;
        for (int64_t i = 0; i < group.count; i++) wants.push_back(weight[static_cast<size_t>(group.row(i))][e]);
        const std::vector<size_t> order = ranking(wants);
        for (size_t i = 0; i < takes; i++) {
          const auto t = static_cast<size_t>(group.row(static_cast<int64_t>(order[i])));
          out.gate[t][e] = weight[t][e];
          out.load[e]++;
        }
      }
      continue;
    }
    std::vector<std::vector<size_t>> chosen;
    Table gates;
    for (int64_t i = 0; i < group.count; i++) {
      const auto t = static_cast<size_t>(group.row(i));
      std::vector<double> key = logits[t];
      if (x.router == Router::sigmoid)
        for (size_t e = 0; e < E; e++) key[e] = weight[t][e] + static_cast<double>(in.bias[e]);
      chosen.push_back(ranking(key));
      double sum = x.router == Router::sigmoid ? 1e-20 : 0;
      for (size_t j = 0; j < k; j++) sum += weight[t][chosen.back()[j]];
      const bool shares = x.router == Router::noisy || x.router == Router::gshard ||
                          ((x.router == Router::softmax || x.router == Router::sigmoid) && x.normalise);
      gates.emplace_back();
      for (size_t j = 0; j < k; j++) gates.back().push_back(weight[t][chosen.back()[j]] / (shares ? sum : 1));
    }
    std::vector<double> used(E, 0);
    for (size_t j = 0; j < k; j++)
      for (size_t i = 0; i < chosen.size(); i++) {
        const auto t = static_cast<size_t>(group.row(static_cast<int64_t>(i)));
        const size_t e = chosen[i][j];
        out.load[e]++;
        if (x.router == Router::gshard && j == 1 && !in.lots.empty() && !(2 * gates[i][1] > static_cast<double>(in.lots[t])))
          continue;
        if (x.capacity > 0 && used[e] + 1 > std::max(1.0, std::ceil(x.capacity * even - 1e-9))) continue;
        used[e]++;
        out.gate[t][e] = gates[i][j];
      }
    if (x.router == Router::sigmoid) continue;
    if (x.router == Router::noisy) {
      if (in.noise.empty()) continue;
      std::vector<double> importance(E, 0), load(E, 0);
      for (size_t i = 0; i < chosen.size(); i++) {
        const auto t = static_cast<size_t>(group.row(static_cast<int64_t>(i)));
        for (size_t j = 0; j < k; j++) importance[chosen[i][j]] += gates[i][j];
        for (size_t e = 0; e < E; e++) {
          std::vector<double> others;
          for (size_t o = 0; o < E; o++)
            if (o != e) others.push_back(logits[t][o]);
          std::sort(others.rbegin(), others.rend());
          load[e] += 0.5 * (1 + std::erf((plain[t][e] - others[k - 1]) / spread[t][e] / std::sqrt(2.0)));
        }
      }
      out.aux += n * (squared_variation(importance) + squared_variation(load));
      continue;
    }
    for (size_t e = 0; e < E; e++) {
      double share = 0, mean = 0;
      for (size_t i = 0; i < chosen.size(); i++) {
        for (size_t j = 0; j < (x.router == Router::softmax ? k : 1); j++) share += chosen[i][j] == e ? 1 / n : 0;
        mean += weight[static_cast<size_t>(group.row(static_cast<int64_t>(i)))][e] / n;
      }
      out.aux += n * static_cast<double>(E) * share * mean;
    }
  }
  return out;
}

struct Case {
  std::string name;
  Experts experts;
  bool draws = true;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr int64_t kSequences = 4, kLength = 12;

std::vector<float> floats(const at::Tensor& x) {
  std::vector<float> out;
  for (double v : doubles(x)) out.push_back(static_cast<float>(v));
  return out;
}

// A router's input together with the numbers that it borrows.
struct Problem {
  Problem(const Case& c, uint64_t item, double size = 1) : experts(c.experts) {
    in.experts = &experts;
    in.tokens = kSequences * kLength;
    numbers = doubles(normal({in.tokens * in.width()}, item));
    for (double& v : numbers) v *= size;
    in.logits = numbers;
    in.groups = token_groups(experts, kSequences, kLength);
    if (experts.router == Router::sigmoid) in.bias = floats(normal({experts.count}, item + 1).mul_(0.3));
    if (experts.router == Router::noisy && c.draws) in.noise = floats(normal({in.tokens, experts.count}, item + 2));
    if (experts.router == Router::gshard && c.draws)
      for (double v : doubles(normal({in.tokens}, item + 3))) in.lots.push_back(static_cast<float>(v - std::floor(v)));
  }
  Experts experts;
  std::vector<double> numbers;
  RouterInput<double> in;
};

template <class Real>
Table gates_of(const Routing<Real>& r, int64_t tokens) {
  const auto E = r.begin.size() - 1;
  Table out(static_cast<size_t>(tokens), std::vector<double>(E, 0));
  for (size_t e = 0; e < E; e++)
    for (int64_t row = r.begin[e]; row < r.begin[e + 1]; row++)
      out[static_cast<size_t>(r.token[static_cast<size_t>(row)])][e] = static_cast<double>(r.gate[static_cast<size_t>(row)]);
  return out;
}

void expect_near(const Table& got, const Table& wanted, double bound) {
  for (size_t t = 0; t < wanted.size(); t++)
    for (size_t e = 0; e < wanted[t].size(); e++) {
      EXPECT_NEAR(got[t][e], wanted[t][e], bound) << "token " << t << ", expert " << e;
      EXPECT_EQ(got[t][e] != 0, wanted[t][e] != 0) << "token " << t << ", expert " << e;
    }
}

class Routers : public testing::TestWithParam<Case> {};

TEST_P(Routers, DecideAsTheirFormulasSay) {
  for (uint64_t item : {10u, 20u, 30u}) {
    Problem p(GetParam(), item);
    const Naive wanted = reference(p.in);
    const Routing<double> got = route(p.in);
    expect_near(gates_of(got, p.in.tokens), wanted.gate, 1e-13);
    EXPECT_NEAR(got.aux, wanted.aux, 1e-9 * std::max(1.0, wanted.aux));
    EXPECT_NEAR(got.z, wanted.z, 1e-9 * std::max(1.0, wanted.z));
    EXPECT_NEAR(got.entropy, wanted.entropy, 1e-9 * std::max(1.0, wanted.entropy));
    EXPECT_EQ(got.load, wanted.load);
    // In float32, the choices are the same and the numbers are close.
    RouterInput<float> narrow;
    std::vector<float> numbers(p.numbers.begin(), p.numbers.end());
    narrow.experts = &p.experts;
    narrow.tokens = p.in.tokens;
    narrow.logits = numbers;
    narrow.groups = p.in.groups;
    narrow.bias = p.in.bias;
    narrow.noise = p.in.noise;
    narrow.lots = p.in.lots;
    const Routing<float> single = route(narrow);
    expect_near(gates_of(single, p.in.tokens), wanted.gate, 2e-6);
    EXPECT_NEAR(single.aux, wanted.aux, 1e-4 * std::max(1.0, wanted.aux));
  }
}

TEST_P(Routers, RowsAreSortedByExpertAndFoundByToken) {
  Problem p(GetParam(), 40);
  const Routing<double> r = route(p.in);
  ASSERT_EQ(r.begin.back(), r.rows());
  ASSERT_LE(r.rows(), most_rows(p.experts, kSequences, kLength));
  for (size_t e = 0; e + 1 < r.begin.size(); e++)
    for (int64_t row = r.begin[e] + 1; row < r.begin[e + 1]; row++)
      EXPECT_LT(r.token[static_cast<size_t>(row) - 1], r.token[static_cast<size_t>(row)]);
  std::vector<int> seen(static_cast<size_t>(r.rows()), 0);
  for (int64_t t = 0; t < p.in.tokens; t++)
    for (int64_t i = r.token_begin[static_cast<size_t>(t)]; i < r.token_begin[static_cast<size_t>(t) + 1]; i++) {
      const int64_t row = r.token_rows[static_cast<size_t>(i)];
      EXPECT_EQ(r.token[static_cast<size_t>(row)], t);
      seen[static_cast<size_t>(row)]++;
    }
  for (int times : seen) EXPECT_EQ(times, 1);
}

TEST_P(Routers, GradientsAgreeWithFiniteDifferencesOfTheFormula) {
  Problem p(GetParam(), 50);
  const double scale = 0.7;
  const Routing<double> r = route(p.in);
  const std::vector<double> pull = doubles(normal({p.in.tokens * p.experts.count}, 60));
  auto objective = [&] {
    const Naive now = reference(p.in);
    double sum = scale * (p.experts.aux_loss * now.aux + p.experts.z_loss * now.z);
    for (size_t t = 0; t < now.gate.size(); t++)
      for (size_t e = 0; e < now.gate[t].size(); e++) sum += now.gate[t][e] * pull[t * now.gate[t].size() + e];
    return sum;
  };
  std::vector<double> g_gate(static_cast<size_t>(r.rows()));
  for (size_t e = 0; e + 1 < r.begin.size(); e++)
    for (int64_t row = r.begin[e]; row < r.begin[e + 1]; row++)
      g_gate[static_cast<size_t>(row)] =
          pull[static_cast<size_t>(r.token[static_cast<size_t>(row)] * p.experts.count) + e];
  const std::vector<double> g = route_backward<double>(p.in, r, g_gate, scale);
  ASSERT_EQ(g.size(), p.numbers.size());
  double largest = 0;
  for (double v : g) largest = std::max(largest, std::abs(v));
  for (size_t i = 0; i < g.size(); i += 3) {
    const double start = p.numbers[i];
    const double slope = derivative([&](double h) {
      p.numbers[i] = start + h;
      return objective();
    }, 1e-5);
    p.numbers[i] = start;
    EXPECT_NEAR(g[i], slope, 2e-7 * largest) << "logit " << i;
  }
}

TEST_P(Routers, DoNotDependOnHowABatchIsCut) {
  Problem p(GetParam(), 70);
  const int64_t E = p.experts.count, whole = p.in.tokens, half = whole / 2;
  const Routing<double> all = route(p.in);
  double aux = 0;
  Table gates;
  for (int64_t part = 0; part < 2; part++) {
    RouterInput<double> in = p.in;
    in.tokens = half;
    in.logits = p.in.logits.subspan(static_cast<size_t>(part * half * in.width()), static_cast<size_t>(half * in.width()));
    in.groups = token_groups(p.experts, kSequences / 2, kLength);
    if (!in.noise.empty()) in.noise = {p.in.noise.begin() + part * half * E, p.in.noise.begin() + (part + 1) * half * E};
    if (!in.lots.empty()) in.lots = {p.in.lots.begin() + part * half, p.in.lots.begin() + (part + 1) * half};
    const Routing<double> r = route(in);
    aux += r.aux;
    for (auto& row : gates_of(r, half)) gates.push_back(row);
  }
  EXPECT_EQ(gates, gates_of(all, whole));
  EXPECT_NEAR(aux, all.aux, 1e-12 * std::max(1.0, all.aux));
}

TEST_P(Routers, TiesGoToTheFirst) {
  Problem p(GetParam(), 80, 0);  // all logits are equal
  p.in.noise.clear();
  if (!p.in.bias.empty()) std::fill(p.in.bias.begin(), p.in.bias.end(), 0.0f);
  expect_near(gates_of(route(p.in), p.in.tokens), reference(p.in).gate, 1e-15);
  const Routing<double> r = route(p.in);
  if (p.experts.router != Router::expert_choice)
    for (int64_t e = 0; e < p.experts.count; e++)
      EXPECT_EQ(r.load[static_cast<size_t>(e)], e < p.experts.top_k ? p.in.tokens : 0);
}

TEST_P(Routers, LargeLogitsStayFinite) {
  Problem p(GetParam(), 90, 1e4);
  const Routing<double> r = route(p.in);
  for (double gate : r.gate) EXPECT_TRUE(std::isfinite(gate));
  EXPECT_TRUE(std::isfinite(r.aux) && std::isfinite(r.z));
  const std::vector<double> g_gate(static_cast<size_t>(r.rows()), 1);
  for (double g : route_backward<double>(p.in, r, g_gate, 1)) EXPECT_TRUE(std::isfinite(g));
}

TEST_P(Routers, WhatIsNoNumberStillGoesSomewhere) {
  Problem p(GetParam(), 95);
  for (size_t i = 0; i < p.numbers.size(); i += 7) p.numbers[i] = NAN;
  const Routing<double> r = route(p.in);
  for (int64_t token : r.token) EXPECT_TRUE(token >= 0 && token < p.in.tokens);
  if (p.experts.capacity == 0 && p.experts.router == Router::softmax)
    EXPECT_EQ(r.rows(), p.in.tokens * p.experts.top_k);
}

Experts experts(Router router, int64_t count, int64_t top_k, double capacity = 0) {
  Experts x;
  x.router = router;
  x.count = count;
  x.top_k = top_k;
  x.ffn = 8;
  x.capacity = capacity;
  x.aux_loss = 0.3;
  x.z_loss = 0.05;
  return x;
}
template <class Change>
Experts with(Experts x, const Change& change) {
  change(x);
  return x;
}

INSTANTIATE_TEST_SUITE_P(
    All, Routers,
    testing::Values(Case{"Softmax", experts(Router::softmax, 5, 2)}, Case{"SoftmaxOne", experts(Router::softmax, 1, 1)},
                    Case{"SoftmaxAll", experts(Router::softmax, 3, 3)},
                    Case{"SoftmaxPlain", with(experts(Router::softmax, 6, 3), [](Experts& x) { x.normalise = false; })},
                    Case{"SoftmaxCapacity", experts(Router::softmax, 4, 2, 0.8)},
                    Case{"SoftmaxGroups", with(experts(Router::softmax, 4, 2, 1.0), [](Experts& x) { x.group = 5; })},
                    Case{"SoftmaxAcross", with(experts(Router::softmax, 4, 2, 1.0), [](Experts& x) { x.across = 2; })},
                    Case{"Noisy", experts(Router::noisy, 5, 2)}, Case{"NoisyCapacity", experts(Router::noisy, 4, 1, 1.0)},
                    Case{"NoisyQuiet", experts(Router::noisy, 5, 2), false}, Case{"Switch", experts(Router::switch_, 4, 1)},
                    Case{"SwitchCapacity", experts(Router::switch_, 4, 1, 1.0)},
                    Case{"Gshard", experts(Router::gshard, 5, 2, 1.25)},
                    Case{"GshardSure", experts(Router::gshard, 5, 2), false},
                    Case{"ExpertChoice", with(experts(Router::expert_choice, 4, 2), [](Experts& x) { x.across = 2; })},
                    Case{"ExpertChoiceInSequence", experts(Router::expert_choice, 4, 1, 1.5)},
                    Case{"Sigmoid", experts(Router::sigmoid, 6, 2)},
                    Case{"SigmoidPlain",
                         with(experts(Router::sigmoid, 6, 3, 1.0), [](Experts& x) { x.normalise = false; })}),
    [](const auto& test) { return test.param.name; });

TEST(Groups, FollowTheData) {
  Experts x;
  const auto rows = [&](int64_t sequences, int64_t length) {
    std::vector<std::vector<int64_t>> all;
    for (const TokenGroup& group : token_groups(x, sequences, length)) {
      all.emplace_back();
      for (int64_t i = 0; i < group.count; i++) all.back().push_back(group.row(i));
    }
    return all;
  };
  EXPECT_EQ(rows(2, 3), (std::vector<std::vector<int64_t>>{{0, 1, 2}, {3, 4, 5}}));
  x.group = 2;
  EXPECT_EQ(rows(2, 3), (std::vector<std::vector<int64_t>>{{0, 1}, {2}, {3, 4}, {5}}));
  x.group = 0;
  x.across = 2;
  EXPECT_EQ(rows(3, 2), (std::vector<std::vector<int64_t>>{{0, 2}, {1, 3}, {4}, {5}}));
}

TEST(Groups, OverflowPassesByAndFirstChoicesComeFirst) {
  // Two experts that take one token each. Both tokens choose expert 0 first and expert 1 second.
  Experts x = experts(Router::softmax, 2, 2, 0.5);
  const std::vector<double> logits{2, 1, 3, 1};
  RouterInput<double> in;
  in.experts = &x;
  in.tokens = 2;
  in.logits = logits;
  in.groups = {{0, 1, 2}};
  const Routing<double> r = route(in);
  EXPECT_EQ(r.begin, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(r.token, (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(r.dropped, 2);
  in.unlimited = true;
  EXPECT_EQ(route(in).rows(), 4);
}

TEST(RoutingRecord, ComesBackFromItsNumbers) {
  const RoutingRecord record{{}, {12, 24, 3, 1.5, 2.5, 3.5, {7, 8, 9}, 0}};
  const RoutingRecord again = record_of(numbers_of(record, 3), 3);
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(again[0].tokens, 0);
  EXPECT_EQ(again[1].load, record[1].load);
  EXPECT_EQ(again[1].dropped, 3);
  EXPECT_EQ(again[1].z, 2.5);
  EXPECT_EQ(again[1].entropy, 3.5);
}

}  // namespace
}  // namespace megalith
