// Compares every optimizer with a naive float64 implementation, and with numbers of PyTorch or Hugging Face.
#include "optim/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "optim/trial.h"

namespace megalith {
namespace {

// The formulas of the papers, computed element by element in double.
struct Naive {
  OptimizerKind kind;
  int64_t rows, columns;  // rows is 0 if it is not a matrix
  double decay;
  std::vector<double> p, m, v, r, c;

  void step(std::vector<double> g, double lr, int t) {
    const size_t n = p.size();
    m.resize(n), v.resize(n), r.resize(rows), c.resize(columns);
    for (size_t i = 0; i < n && kind != OptimizerKind::adafactor; i++) {
      if (kind == OptimizerKind::adamw) {
        p[i] -= lr * decay * p[i];
        m[i] = 0.9 * m[i] + 0.1 * g[i];
        v[i] = 0.95 * v[i] + 0.05 * g[i] * g[i];
        p[i] -= lr * (m[i] / (1 - std::pow(0.9, t))) / (std::sqrt(v[i] / (1 - std::pow(0.95, t))) + 1e-8);
      } else if (kind == OptimizerKind::sgd) {
        m[i] = 0.9 * m[i] + g[i] + decay * p[i];
        p[i] -= lr * m[i];
      } else {
        const double blend = 0.9 * m[i] + 0.1 * g[i];
        p[i] -= lr * ((blend > 0 ? 1 : blend < 0 ? -1 : 0) + decay * p[i]);
        m[i] = 0.95 * m[i] + 0.05 * g[i];
      }
    }
    if (kind == OptimizerKind::adafactor) adafactor(g, lr, t);
  }

  void adafactor(const std::vector<double>& g, double lr, int t) {
    const double b = 1 - std::pow(t, -0.8);
    std::vector<double> u(g.size());
    if (rows == 0) {
      for (size_t i = 0; i < g.size(); i++) {
        v[i] = b * v[i] + (1 - b) * (g[i] * g[i] + 1e-30);
        u[i] = g[i] / std::sqrt(v[i]);
      }
    } else {
      double mean = 0;
      for (int64_t i = 0; i < rows; i++) {
        double sum = 0;
        for (int64_t j = 0; j < columns; j++) sum += g[i * columns + j] * g[i * columns + j] + 1e-30;
        r[i] = b * r[i] + (1 - b) * sum / columns;
        mean += r[i] / rows;
      }
      for (int64_t j = 0; j < columns; j++) {
        double sum = 0;
        for (int64_t i = 0; i < rows; i++) sum += g[i * columns + j] * g[i * columns + j] + 1e-30;
        c[j] = b * c[j] + (1 - b) * sum / rows;
      }
      for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
          u[i * columns + j] = g[i * columns + j] / std::sqrt(r[i] * c[j] / mean);
    }
    double squares = 0;
    for (double x : u) squares += x * x;
    const double clip = std::max(1.0, std::sqrt(squares / u.size()) / 1.0);
    for (size_t i = 0; i < u.size(); i++) p[i] -= lr * decay * p[i] + lr * u[i] / clip;
  }
};

// If Lion's blend were within rounding of zero, its sign could be wrong and the element would differ by a whole step. These
// data have no such element.
void expect_follows_naive(OptimizerKind kind, std::vector<int64_t> shape, bool decays) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  const auto initial = normals(n, 1);
  Trial trial(settings(kind), shape, initial);
  trial.facts.decays = decays;
  Naive naive{kind,
              shape.size() == 2 ? shape[0] : 0,
              shape.size() == 2 ? shape[1] : 0,
              decays ? 0.1 : 0.0,
              {initial.begin(), initial.end()},
              {},
              {},
              {},
              {}};
  for (int t = 1; t <= 10; t++) {
    const auto gradient = normals(n, 100 + static_cast<uint64_t>(t), 0.3 * t);
    const double lr = 0.01 / t, scale = 0.37;
    std::vector<double> scaled;
    for (float g : gradient) scaled.push_back(scale * g);
    trial.step(gradient, {.lr = lr, .gradient_scale = scale, .step = t});
    naive.step(scaled, lr, t);
  }
  double worst = 0, moved = 0;
  for (int64_t i = 0; i < n; i++) {
    worst = std::max(worst, std::abs(trial.value[i] - naive.p[i]));
    moved = std::max(moved, std::abs(trial.value[i] - static_cast<double>(initial[i])));
  }
  EXPECT_LT(worst, 2e-6) << static_cast<int>(kind);
  EXPECT_GT(moved, 0.01) << static_cast<int>(kind);
}

// Returns the gradients of all elements at step t, for the reference numbers below.
std::vector<float> reference_gradient(int64_t n, int t) {
  std::vector<float> g;
  for (int64_t i = 0; i < n; i++)
    g.push_back(static_cast<float>(std::sin(3.0 * static_cast<double>(i) + t) *
                                   (0.1 + 0.3 * static_cast<double>(i))));
  return g;
}

void expect_reference(OptimizerKind kind, std::vector<int64_t> shape, const std::vector<float>& expected) {
  std::vector<float> initial;
  for (size_t i = 0; i < expected.size(); i++) initial.push_back(0.5f - 0.25f * static_cast<float>(i));
  Trial trial(settings(kind), shape, initial);
  for (int t = 1; t <= 5; t++)
    trial.step(reference_gradient(std::ssize(expected), t), {.lr = 0.01, .step = t});
  for (size_t i = 0; i < expected.size(); i++)
    EXPECT_NEAR(trial.value[i], expected[i], 4e-7 * std::max(1.0f, std::abs(expected[i]))) << "element " << i;
}

}  // namespace

TEST(Optimizers, FollowTheFormulasInDouble) {
  for (OptimizerKind kind : kAll)
    for (bool decays : {true, false}) {
      expect_follows_naive(kind, {1003}, decays);
      expect_follows_naive(kind, {37, 53}, decays);
      expect_follows_naive(kind, {1, 40}, decays);
      expect_follows_naive(kind, {40, 1}, decays);
      expect_follows_naive(kind, {3, 5, 7}, decays);
    }
}

// Made with PyTorch 2.13 on the CPU: five steps of torch.optim.AdamW(lr=0.01, betas=(0.9, 0.95), eps=1e-8,
// weight_decay=0.1, foreach=False) from p[i] = 0.5 - 0.25 i with the gradients of reference_gradient.
TEST(AdamW, GivesPyTorchsNumbers) {
  expect_reference(OptimizerKind::adamw, {7},
                   {0.467160136f, 0.280976206f, -0.0338640213f, -0.213529825f, -0.533738256f, -0.709454238f,
                    -1.03182769f});
}

// As above with torch.optim.SGD(lr=0.01, momentum=0.9, weight_decay=0.1, foreach=False).
TEST(Sgd, GivesPyTorchsNumbers) {
  expect_reference(OptimizerKind::sgd, {7},
                   {0.488907307f, 0.266299576f, -0.0360837243f, -0.193601742f, -0.563160658f, -0.655263007f,
                    -1.08461702f});
}

// As above with transformers 5.22's Adafactor(lr=0.01, scale_parameter=False, relative_step=False,
// weight_decay=0.1), once on 7 elements and once on 12 as a matrix of 3 rows.
TEST(Adafactor, GivesHuggingFacesNumbers) {
  expect_reference(OptimizerKind::adafactor, {7},
                   {0.497115582f, 0.252315551f, -0.0069374349f, -0.238234475f, -0.511796534f, -0.728049874f,
                    -1.01718044f});
  expect_reference(OptimizerKind::adafactor, {3, 4},
                   {0.496541828f, 0.251302451f, -0.00402808562f, -0.241757408f, -0.522329271f, -0.726778448f,
                    -1.01127005f, -1.22865939f, -1.50724602f, -1.72671747f, -2.00526643f, -2.22296143f});
}

TEST(Optimizers, SlotsAreNamedAndSizedByWhatTheyKeep) {
  const ParameterFacts matrix{"w", {3, 4}}, vector{"b", {4}};
  const auto names = [](const TrainSettings& s, const ParameterFacts& p) {
    std::vector<std::string> result;
    for (const SlotSpec& slot : make_optimizer(s)->slots(p)) result.push_back(slot.name);
    return result;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(settings(OptimizerKind::adamw), matrix), (Names{"exp_avg", "exp_avg_sq"}));
  EXPECT_EQ(names(settings(OptimizerKind::lion), matrix), (Names{"exp_avg"}));
  EXPECT_EQ(names(settings(OptimizerKind::sgd), matrix), (Names{"momentum_buffer"}));
  EXPECT_EQ(names(settings(OptimizerKind::adafactor), matrix), (Names{"exp_avg_sq_row", "exp_avg_sq_col"}));
  EXPECT_EQ(names(settings(OptimizerKind::adafactor), vector), (Names{"exp_avg_sq"}));
  TrainSettings plain = settings(OptimizerKind::sgd);
  plain.momentum = 0;
  EXPECT_TRUE(names(plain, matrix).empty());
}

TEST(Optimizers, HaveTheStateThatTheirRowsSay) {
  const ParameterFacts matrix{.name = "w", .shape = {8, 4}};
  for (OptimizerKind kind : kAll) {
    const auto optimizer = make_optimizer(settings(kind));
    int floats = 0;
    for (const SlotSpec& slot : optimizer->slots(matrix)) floats += slot.extent == SlotExtent::element;
    EXPECT_EQ(floats, row_of(kind).state_floats) << row_of(kind).word;
    EXPECT_EQ(optimizer->statistics_rounds() == 0, row_of(kind).elementwise) << row_of(kind).word;
  }
}

TEST(Sgd, WithoutMomentumIsPlainDescent) {
  TrainSettings s = settings(OptimizerKind::sgd);
  s.momentum = 0;
  Trial trial(s, {2}, {1.0f, -2.0f});
  trial.step({4.0f, 8.0f}, {.lr = 0.5, .gradient_scale = 0.25, .step = 1});
  EXPECT_FLOAT_EQ(trial.value[0], 1.0f - 0.5f * (1.0f + 0.1f));
  EXPECT_FLOAT_EQ(trial.value[1], -2.0f - 0.5f * (2.0f - 0.2f));
}

TEST(Lion, AZeroGradientMovesNothingButTheDecay) {
  Trial trial(settings(OptimizerKind::lion), {2}, {1.0f, -2.0f});
  trial.step({0.0f, 0.0f}, {.lr = 0.5, .step = 1});
  EXPECT_FLOAT_EQ(trial.value[0], 0.95f);
  EXPECT_FLOAT_EQ(trial.value[1], -1.9f);
}

TEST(Adafactor, AGradientOfZerosStaysFinite) {
  for (std::vector<int64_t> shape : {std::vector<int64_t>{6}, {2, 3}}) {
    Trial trial(settings(OptimizerKind::adafactor), shape, std::vector<float>(6, 1.0f));
    trial.step(std::vector<float>(6, 0.0f), {.lr = 0.01, .step = 1});
    for (float p : trial.value) EXPECT_FLOAT_EQ(p, 0.999f);
  }
}

}  // namespace megalith
