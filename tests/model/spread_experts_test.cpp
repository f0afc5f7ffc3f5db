// Compares experts spread over ranks with one rank that has all experts.
#include "model/split_runs.h"

namespace megalith {
namespace {
using namespace testing_support;

// Compares experts spread over ranks that have their own sequences with one rank that computes all sequences.
void expect_spread(const Model& model, int64_t expert, int64_t tensor = 1, int64_t context = 1,
                   ContextForm form = ContextForm::ring) {
  SCOPED_TRACE(testing::Message() << model.name << ", expert " << expert << ", tensor " << tensor << ", context "
                                  << context);
  std::printf("  %s: expert %d, tensor %d, context %d\n", model.name.c_str(), static_cast<int>(expert),
              static_cast<int>(tensor), static_cast<int>(context));
  for (at::ScalarType type : {at::kDouble, at::kFloat}) {
    const bool exact = type == at::kDouble;
    const Result whole = run(model, 1, 1, form, type, 1, expert * kMicros);
    expect_same(run(model, tensor, context, form, type, expert), whole, exact ? 1e-13 : 1e-6, exact ? 1e-9 : 1e-4);
  }
}

TEST(SpreadExperts, GiveTheLossAndGradientsOfOneRank) {
  expect_spread(sparse("Softmax", experts_of(Router::softmax)), 2);
  expect_spread(sparse("Softmax", experts_of(Router::softmax)), 4);
  expect_spread(sparse("ThreeRanks", experts_of(Router::softmax, 6, 3)), 3);
  expect_spread(sparse("Noisy", experts_of(Router::noisy)), 2);
  expect_spread(sparse("Gshard", experts_of(Router::gshard)), 2);
  Experts crowded = experts_of(Router::softmax, 8);
  crowded.capacity = 0.75;
  crowded.group = 4;
  expect_spread(sparse("Capacity", crowded), 4);
  Experts jittered = experts_of(Router::switch_, 4, 1);
  jittered.jitter = 0.1;
  expect_spread(sparse("Switch", jittered), 2);
  Experts biased = experts_of(Router::sigmoid);
  biased.shared = 8;
  biased.ffn = 12;
  expect_spread(sparse("SigmoidShared", biased), 2);
  Experts chooses = experts_of(Router::expert_choice);
  chooses.across = kSequences;
  expect_spread(sparse("ExpertChoice", chooses), 2);
  Model some = sparse("EverySecondDropping", experts_of(Router::softmax));
  some.experts.every = 2;
  some.kept = 6;
  expect_spread(some, 2);
}

TEST(SpreadExperts, ShareTheirInsideAndTheirSequencesToo) {
  Experts crowded = experts_of(Router::softmax);
  crowded.capacity = 0.75;
  crowded.group = 4;
  Experts biased = experts_of(Router::sigmoid);
  biased.shared = 8;
  biased.ffn = 12;
  Experts jittered = experts_of(Router::switch_, 4, 1);
  jittered.jitter = 0.1;
  Experts chooses = experts_of(Router::expert_choice);
  chooses.across = kSequences;
  Model dropping = sparse("Dropping", biased);
  dropping.kept = 6;
  const std::vector<Model> models{sparse("Noisy", experts_of(Router::noisy)), sparse("Gshard", experts_of(Router::gshard)),
                                  sparse("Capacity", crowded),                sparse("SigmoidShared", biased),
                                  sparse("Switch", jittered),                 sparse("ExpertChoice", chooses), dropping};
  for (const Model& model : models) {
    expect_spread(model, 1, 2);
    expect_spread(model, 1, 1, 3);
    expect_spread(model, 1, 2, 2);
    expect_spread(model, 2, 2, 2, ContextForm::ulysses);
  }
}

TEST(SpreadExperts, ComputeInSixteenBitsToo) {
  const Model model = sparse("", experts_of(Router::softmax, 2, 2));  // rounding must not change the choice of experts
  expect_same(run(model, 1, 1, kRing, at::kBFloat16, 2), run(model, 1, 1, kRing, at::kBFloat16, 1, 2 * kMicros), 2e-3, 0.1);
}

TEST(SpreadExperts, RunTwiceGiveTheSameBits) {
  const Model model = sparse("", experts_of(Router::noisy));
  const Result one = run(model, 1, 1, kRing, at::kFloat, 4), two = run(model, 1, 1, kRing, at::kFloat, 4);
  EXPECT_EQ(one.loss, two.loss);
  EXPECT_EQ(one.gradients, two.gradients);
}

TEST(SpreadExperts, ArePartsOfTheirOwnThatBeginPages) {
  const ModelShape shape = shape_of(sparse("", experts_of(Router::softmax)));
  std::map<std::string, int> holders;
  for (int rank = 0; rank < 2; rank++) {
    const auto blocks = list_blocks(shape, Mesh({.data = 2, .expert = 2}, rank)), whole = list_blocks(shape);
    for (size_t b = 0; b < blocks.size(); b++) {
      const BlockSpec& spec = blocks[b];
      const bool layer = spec.kind == BlockKind::layer;
      const auto count = static_cast<size_t>(layer ? shape.experts.count : 0);
      ASSERT_EQ(whole[b].segments.size(), 1 + count);
      ASSERT_EQ(spec.segments.size(), 1 + count / 2);
      EXPECT_EQ(by_ranks(whole[b].segments).size(), 1u);
      EXPECT_EQ(by_ranks(spec.segments).size(), layer ? 2u : 1u);
      EXPECT_EQ(by_ranks(spec.segments).back().range.end, spec.flat_size);
      EXPECT_EQ(spec.segments.back().range.end, spec.flat_size);
      for (size_t part = 0; part < spec.segments.size(); part++) {
        EXPECT_EQ(spec.segments[part].expert, static_cast<int64_t>(part) - 1);
        EXPECT_EQ(spec.segments[part].spread, part > 0);
        EXPECT_EQ(whole[b].segments[part].spread, false);
        EXPECT_EQ(spec.segments[part].range.begin % kPartAlign, 0);
        if (part > 0) {
          EXPECT_LE(spec.segments[part - 1].range.end, spec.segments[part].range.begin);
        }
      }
      size_t part = 0;  // index of the segment that the parameter is in
      ASSERT_EQ(spec.parameters.size(), whole[b].parameters.size());
      for (size_t i = 0; i < spec.parameters.size(); i++) {
        const ParameterSpec& p = spec.parameters[i];
        EXPECT_EQ(p.name, whole[b].parameters[i].name);
        EXPECT_EQ(p.whole_shape, whole[b].parameters[i].shape);
        holders[p.name] += p.size() > 0;
        if (p.size() == 0) continue;  // another rank has it
        part += p.name.ends_with("w1.weight");
        EXPECT_GE(p.offset, spec.segments[part].range.begin);
        EXPECT_LE(p.offset + p.size(), spec.segments[part].range.end);
      }
    }
  }
  for (const auto& [name, ranks] : holders) EXPECT_EQ(ranks, name.find("experts.") == std::string::npos ? 2 : 1) << name;
}

}  // namespace
}  // namespace megalith
