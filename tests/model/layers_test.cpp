// Compares the backward of each layer with finite differences of its forward, in double, for its input and every weight.
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <functional>

#include "data/batch.h"
#include "model/layers/attention.h"
#include "model/layers/feed_forward.h"
#include "model/layers/linear.h"
#include "model/layers/norm.h"
#include "model/layers/table.h"
#include "model/layers/vocabulary_loss.h"
#include "model/layers/vocabulary_loss_facts.h"
#include "model/support.h"
#include "model/tensor_ops.h"

namespace megalith {
namespace {
using namespace testing_support;

Weight random_weight(std::vector<int64_t> shape, uint64_t item, double spread = 0.5) {
  at::Tensor value = normal(std::move(shape), item).mul_(spread);
  return {value, tensor::zeros_like(value)};
}

struct Variable {
  std::string name;
  at::Tensor value, gradient;
};

// `output` computes from the current values of the variables. Their gradients are those of the loss <cotangent, output>.
void expect_gradients(const std::function<at::Tensor()>& output, const at::Tensor& cotangent,
                      const std::vector<Variable>& variables) {
  uint64_t item = 500;
  for (const Variable& v : variables) {
    at::Tensor start = v.value.clone(), direction = normal(v.value.sizes().vec(), item++);
    double slope = derivative([&](double h) {
      v.value.copy_(start).add_(direction, h);
      return dot(output(), cotangent);
    });
    v.value.copy_(start);
    double size = std::sqrt(dot(v.gradient, v.gradient) * dot(direction, direction));
    EXPECT_GT(size, 0) << v.name;
    EXPECT_NEAR(dot(v.gradient, direction), slope, 1e-8 * size) << v.name;
  }
}

class Layers : public testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(1); }
  c10::InferenceMode no_graph;
};

TEST_F(Layers, LinearInBothOrdersWithAndWithoutBias) {
  for (MatrixOrder order : {MatrixOrder::out_in, MatrixOrder::in_out})
    for (bool bias : {true, false}) {
      bool out_in = order == MatrixOrder::out_in;
      Linear linear{random_weight(out_in ? std::vector<int64_t>{5, 7} : std::vector<int64_t>{7, 5}, 1),
                    bias ? random_weight({5}, 2) : Weight{}, order};
      at::Tensor x = normal({4, 7}, 3), g = normal({4, 5}, 4);
      linear.add_gradients(x, g);
      std::vector<Variable> variables{{"x", x, linear.input_gradient(g)},
                                      {"weight", linear.weight.value, linear.weight.grad}};
      if (bias) variables.push_back({"bias", linear.bias.value, linear.bias.grad});
      expect_gradients([&] { return linear.forward(x); }, g, variables);
    }
}

TEST_F(Layers, LinearAddsToTheGradientThatIsThere) {
  Linear linear{random_weight({5, 7}, 1), random_weight({5}, 2)};
  at::Tensor x = normal({4, 7}, 3), g = normal({4, 5}, 4);
  linear.add_gradients(x, g);
  at::Tensor once = linear.weight.grad.clone(), bias_once = linear.bias.grad.clone();
  linear.add_gradients(x, g);
  EXPECT_LT(distance(linear.weight.grad, once.mul(2)), 1e-15);
  EXPECT_LT(distance(linear.bias.grad, bias_once.mul(2)), 1e-15);
}

TEST_F(Layers, SixteenBitLinearAccumulatesInFloat32) {
  // Many small additions to a large gradient: in bfloat16 they would be lost.
  at::Tensor value = normal({3, 4}, 1, at::kBFloat16);
  Weight weight{value, tensor::zeros({3, 4}, at::kFloat).add_(256)};
  Linear linear{weight, {}};
  at::Tensor x = normal({1, 4}, 2, at::kBFloat16).fill_(0.5), g = normal({1, 3}, 3, at::kBFloat16).fill_(0.5);
  for (int i = 0; i < 8; i++) linear.add_gradients(x, g);
  EXPECT_EQ(doubles(weight.grad), std::vector<double>(12, 258.0));
}

TEST_F(Layers, LayerNorm) {
  LayerNorm norm{random_weight({9}, 1), random_weight({9}, 2), 1e-5};
  at::Tensor x = normal({6, 9}, 3), g = normal({6, 9}, 4);
  at::Tensor gx = norm.backward(g, x, norm.forward(x));
  expect_gradients([&] { return norm.forward(x).y_NC; }, g,
                   {{"x", x, gx},
                    {"weight", norm.weight.value, norm.weight.grad},
                    {"bias", norm.bias.value, norm.bias.grad}});
}

TEST_F(Layers, RmsNorm) {
  RmsNorm norm{random_weight({9}, 1), 1e-5};
  at::Tensor x = normal({6, 9}, 3), g = normal({6, 9}, 4);
  at::Tensor gx = norm.backward(g, x, norm.forward(x));
  expect_gradients([&] { return norm.forward(x).y_NC; }, g,
                   {{"x", x, gx}, {"weight", norm.weight.value, norm.weight.grad}});
}

TEST_F(Layers, GeluFeedForwardInBothForms) {
  for (kernels::GeluForm form : {kernels::GeluForm::tanh, kernels::GeluForm::erf}) {
    GeluFeedForward layer{{random_weight({7, 11}, 1), random_weight({11}, 2), MatrixOrder::in_out},
                          {random_weight({7, 11}, 3), random_weight({7}, 4), MatrixOrder::out_in}, form};
    at::Tensor x = normal({5, 7}, 5), g = normal({5, 7}, 6);
    Tape tape;
    layer.forward(x, Pass{}, &tape);
    at::Tensor gx = layer.backward(g, x, Pass{}, tape);
    EXPECT_TRUE(tape.empty());
    expect_gradients([&] { return layer.forward(x, Pass{}, nullptr); }, g,
                     {{"x", x, gx},
                      {"up", layer.up.weight.value, layer.up.weight.grad},
                      {"up bias", layer.up.bias.value, layer.up.bias.grad},
                      {"down", layer.down.weight.value, layer.down.weight.grad},
                      {"down bias", layer.down.bias.value, layer.down.bias.grad}});
  }
}

TEST_F(Layers, SwigluFeedForward) {
  SwigluFeedForward layer{{random_weight({22, 7}, 1), {}}, {random_weight({7, 11}, 2), {}}};
  at::Tensor x = normal({5, 7}, 5), g = normal({5, 7}, 6);
  Tape tape;
  layer.forward(x, Pass{}, &tape);
  at::Tensor gx = layer.backward(g, x, Pass{}, tape);
  EXPECT_TRUE(tape.empty());
  expect_gradients([&] { return layer.forward(x, Pass{}, nullptr); }, g,
                   {{"x", x, gx},
                    {"gate and up", layer.gate_up.weight.value, layer.gate_up.weight.grad},
                    {"down", layer.down.weight.value, layer.down.weight.grad}});
}

TEST_F(Layers, AttentionWithEveryGroupingPositionAndVisibility) {
  for (int64_t kv_heads : {4, 2, 1})
    for (double theta : {0.0, 10000.0})
      for (double dropout : {0.0, 0.3})
        for (auto [visibility, documents] : {std::pair(Visibility::causal, false), {Visibility::all, false},
                                             {Visibility::prefix, false}, {Visibility::causal, true},
                                             {Visibility::all, true}, {Visibility::prefix, true}}) {
          Attention attention{4, kv_heads, 6, Rope{theta}, dropout, 1};
          Pass pass;
          pass.sequences = 2;
          pass.length = 9;
          pass.visibility = visibility;
          if (visibility == Visibility::prefix) pass.prefix_B = {2, 6};
          if (documents)
            pass.document_begin_N = tensor::from_values(std::vector<int64_t>{0, 0, 0, 3, 3, 3, 3, 3, 8, 0, 1, 1, 1, 1, 1, 6, 6, 6});
          pass.dropout = dropout > 0;
          pass.step = 3;
          at::Tensor qkv = normal({18, attention.qkv_width()}, 1), g = normal({18, 24}, 2);
          Tape tape;
          attention.forward(qkv.clone(), pass, &tape);
          at::Tensor output = tape.take(), g_qkv = attention.backward(g, output, pass, tape);
          EXPECT_TRUE(tape.empty());
          SCOPED_TRACE(testing::Message() << kv_heads << " key heads, theta " << theta << ", dropout " << dropout
                                          << ", visibility " << static_cast<int>(visibility)
                                          << (documents ? ", documents" : ""));
          // Compares q, k and v separately: one may be small compared to the others.
          std::vector<Variable> variables;
          const int64_t begins[] = {0, 24, 24 + 6 * kv_heads}, widths[] = {24, 6 * kv_heads, 6 * kv_heads};
          for (int i = 0; i < 3; i++)
            variables.push_back({std::string(1, "qkv"[i]), qkv.narrow(1, begins[i], widths[i]),
                                 g_qkv.narrow(1, begins[i], widths[i])});
          expect_gradients([&] { return attention.forward(qkv.clone(), pass, nullptr); }, g, variables);
        }
}

// Documents packed into one sequence have the same outputs and gradients as each document alone.
TEST_F(Layers, DocumentsInOneSequenceDoNotSeeEachOther) {
  const std::vector<int64_t> lengths{5, 1, 8, 3};
  for (Visibility visibility : {Visibility::causal, Visibility::all})
    for (double theta : {0.0, 10000.0}) {
      Attention attention{4, 2, 6, Rope{theta}, 0, 0};
      Pass packed;
      packed.sequences = 1;
      packed.length = 17;
      packed.visibility = visibility;
      packed.document_begin_N = tensor::empty({17}, at::kLong);
      at::Tensor qkv = normal({17, attention.qkv_width()}, 1), g = normal({17, 24}, 2);
      std::vector<at::Tensor> outputs, gradients;
      int64_t begin = 0;
      for (int64_t length : lengths) {
        packed.document_begin_N.narrow(0, begin, length).fill_(begin);
        Pass alone;
        alone.sequences = 1;
        alone.length = length;
        alone.visibility = visibility;
        Tape tape;
        outputs.push_back(attention.forward(qkv.narrow(0, begin, length).clone(), alone, &tape));
        gradients.push_back(attention.backward(g.narrow(0, begin, length).contiguous(), tape.take(), alone, tape));
        begin += length;
      }
      Tape tape;
      at::Tensor output = attention.forward(qkv.clone(), packed, &tape);
      EXPECT_LT(distance(output, tensor::cat(outputs)), 1e-14);
      EXPECT_LT(distance(attention.backward(g, tape.take(), packed, tape), tensor::cat(gradients)), 1e-13);
    }
}

TEST_F(Layers, TableGradientKeptAsideEqualsTheOneAddedStraightAway) {
  Weight aside = random_weight({13, 4}, 1), straight{aside.value, tensor::zeros_like(aside.value)};
  TableGradient keeps(true), adds(false);
  std::vector<double> wanted(13 * 4, 0.0);
  for (uint64_t micro = 0; micro < 5; micro++) {
    at::Tensor rows = ids(6, 13, micro), g = normal({6, 4}, 10 + micro);
    keeps.add(aside, rows, g);
    adds.add(straight, rows, g);
    std::vector<double> values = doubles(g);
    for (int64_t n = 0; n < 6; n++)
      for (int64_t c = 0; c < 4; c++)
        wanted[static_cast<size_t>(rows.const_data_ptr<int64_t>()[n] * 4 + c)] += values[static_cast<size_t>(n * 4 + c)];
  }
  EXPECT_EQ(dot(aside.grad, aside.grad), 0);  // 0 before fold: the head's gradient must be added first
  EXPECT_EQ(doubles(straight.grad), wanted);
  keeps.fold(aside);
  EXPECT_LT(distance(aside.grad, wanted), 1e-15);
  keeps.fold(aside);  // adds nothing: the first fold dropped the rows
  EXPECT_LT(distance(aside.grad, wanted), 1e-15);
}

TEST_F(Layers, VocabularyLossInChunksIsTheLossInOneGo) {
  // Compares three chunks of rows, the last one shorter, with one row at a time.
  const int64_t vocab = 5, rows = 2 * vocabulary_chunk_rows(vocab, 7) + 17;
  VocabularyLoss output{random_weight({vocab, 3}, 1, 2), random_weight({vocab}, 2)};
  at::Tensor x = normal({rows, 3}, 3), targets = ids(rows, vocab, 4), gx = tensor::zeros_like(x), each;
  LossSums sums = output.run(x, targets, 0.5, &gx, &each);
  at::Tensor table_gradient = output.table.grad.clone(), bias_gradient = output.bias.grad.clone();
  output.table.grad.zero_();
  output.bias.grad.zero_();
  double loss = 0;
  at::Tensor gx_single = tensor::zeros_like(x);
  for (int64_t r = 0; r < rows; r++) {
    at::Tensor g = gx_single.narrow(0, r, 1);
    double one = output.run(x.narrow(0, r, 1), targets.narrow(0, r, 1), 0.5, &g, nullptr).loss;
    loss += one;
    ASSERT_NEAR(doubles(each)[static_cast<size_t>(r)], one, 1e-13);
  }
  EXPECT_EQ(sums.targets, rows);
  EXPECT_NEAR(sums.loss, loss, 1e-12 * loss);
  EXPECT_LT(distance(gx, gx_single), 1e-14);
  EXPECT_LT(distance(output.table.grad, table_gradient), 1e-12);
  EXPECT_LT(distance(output.bias.grad, bias_gradient), 1e-12);
}

TEST_F(Layers, ChunksOfTheVocabularyStayWithinBoundsForAnySize) {
  for (int64_t vocab : {1, 100, 5000, 50257, 250000, 2000000}) {
    int64_t rows = vocabulary_chunk_rows(vocab, 7);
    EXPECT_GE(rows, 32);
    EXPECT_LE(rows, 1024);
    EXPECT_TRUE(rows == 32 || rows * vocab <= int64_t{12} << 20) << vocab;
  }
}

TEST_F(Layers, RowsWithoutTargetAreLeftOutAndComeBackAsZeros) {
  at::Tensor targets = ids(6, 9, 1);
  targets[1] = kNoTarget;
  targets[4] = kNoTarget;
  TargetRows rows = target_rows(targets);
  at::Tensor x = normal({6, 3}, 2), picked = rows.select(x), back = rows.scatter(picked, x);
  ASSERT_EQ(picked.size(0), 4);
  for (int64_t n = 0; n < 6; n++) {
    bool has = n != 1 && n != 4;
    EXPECT_TRUE(back[n].equal(has ? x[n] : tensor::zeros_like(x[n]))) << n;
  }
}

}  // namespace
}  // namespace megalith
