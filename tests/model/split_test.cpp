// Compares models split along the tensor and context axes with the same model on one rank: loss and every gradient. In
// double only the order of sums differs. In float32 the results must agree within the bounds for layouts.
#include "model/split_runs.h"

namespace megalith {
namespace {
using namespace testing_support;

struct Case {
  Model model;
  std::vector<SplitOver> layouts;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.model.name; }

class SplitModels : public testing::TestWithParam<Case> {};

TEST_P(SplitModels, GiveTheLossAndGradientsOfTheWholeOne) {
  const auto& [model, layouts] = GetParam();
  const Result exact = run(model, 1, 1, ContextForm::ring, at::kDouble),
               whole = run(model, 1, 1, ContextForm::ring, at::kFloat);
  for (const SplitOver& layout : layouts) {
    SCOPED_TRACE(testing::Message() << "tensor " << layout.tensor << ", context " << layout.context
                                    << (layout.form == ContextForm::ulysses ? ", ulysses" : ""));
    std::printf("  %s: tensor %d, context %d%s\n", model.name.c_str(), static_cast<int>(layout.tensor),
                static_cast<int>(layout.context), layout.form == ContextForm::ulysses ? ", ulysses" : "");
    expect_same(run(model, layout.tensor, layout.context, layout.form, at::kDouble), exact, 1e-13, 1e-9);
    expect_same(run(model, layout.tensor, layout.context, layout.form, at::kFloat), whole, 1e-6, 1e-4);
  }
}

const std::vector<SplitOver> kTensor{{2}, {3}, {4}};
const std::vector<SplitOver> kContext{{1, 2}, {1, 4}, {1, 2, kUlysses}, {1, 4, kUlysses}};
const std::vector<SplitOver> kBoth{{2, 2}, {3, 2, kUlysses}, {2, 3}};
const std::vector<SplitOver> kAll{{2},              {3},              {4},    {1, 2},           {1, 4},
                               {1, 2, kUlysses}, {1, 4, kUlysses}, {2, 2}, {3, 2, kUlysses}, {2, 3}};

INSTANTIATE_TEST_SUITE_P(
    Architectures, SplitModels,
    testing::Values(
        Case{{.name = "Gpt2"}, kAll}, Case{{.name = "Gpt2Untied", .tied = false}, kTensor},
        Case{{.name = "Gpt2Dropout", .dropout = kDrop}, kAll}, Case{{.name = "Gpt2Prefix", .prefix = true}, kContext},
        Case{{.name = "Gpt2DocumentsSomeTargets", .documents = true, .some_targets = true}, kAll},
        Case{{.name = "Gpt2DroppingTokens", .dropout = kDrop, .documents = true, .kept = 6}, kAll},
        Case{{.name = "Llama", .family = &llama_family, .tied = false}, kAll},
        Case{{.name = "LlamaGrouped", .family = &llama_family, .heads = 4, .kv_heads = 2},
             {{2}, {1, 2}, {1, 4}, {1, 2, kUlysses}, {2, 2}}},
        Case{{.name = "LlamaGroupedThree",
              .family = &llama_family,
              .heads = 6,
              .kv_heads = 3,
              .tied = false,
              .dropout = kDrop,
              .biases = true},
             {{3}, {1, 3, kUlysses}, {3, 2}}},
        Case{{.name = "LlamaGroupedDropping",
              .family = &llama_family,
              .heads = 8,
              .kv_heads = 4,
              .dropout = kDrop,
              .prefix = true,
              .some_targets = true,
              .kept = 5},
             {{4}, {1, 4}, {1, 2, kUlysses}, {2, 2}, {2, 2, kUlysses}}},
        Case{{.name = "Bert", .family = &bert_family, .some_targets = true}, kAll},
        Case{{.name = "BertUntiedDropout", .family = &bert_family, .tied = false, .dropout = kDrop, .some_targets = true},
             kBoth},
        Case{{.name = "BertDocumentsDropping",
              .family = &bert_family,
              .dropout = kDrop,
              .documents = true,
              .some_targets = true,
              .kept = 4},
             kAll}),
    [](const auto& test) { return test.param.model.name; });

TEST(SplitModels, ComputeInSixteenBitsToo) {
  for (const Family* family : {&gpt2_family, &llama_family, &bert_family}) {
    const Model model{.name = "", .family = family, .tied = false};
    const Result whole = run(model, 1, 1, kRing, at::kBFloat16);
    for (const SplitOver& layout : {SplitOver{2}, SplitOver{1, 2}, SplitOver{1, 2, kUlysses}, SplitOver{2, 2}})
      expect_same(run(model, layout.tensor, layout.context, layout.form, at::kBFloat16), whole, 2e-3, 0.1);
  }
}

TEST(SplitModels, RunTwiceGiveTheSameBits) {
  const Model model{.name = "", .family = &llama_family, .heads = 4, .kv_heads = 2, .dropout = kDrop};
  const Result one = run(model, 2, 2, kRing, at::kFloat), two = run(model, 2, 2, kRing, at::kFloat);
  EXPECT_EQ(one.loss, two.loss);
  EXPECT_EQ(one.gradients, two.gradients);
}

}  // namespace
}  // namespace megalith
