// Tests what each rank holds of a model and sends, and which splits are rejected.
#include <atomic>

#include "base/error.h"
#include "families/layout_check.h"
#include "families/facts.h"
#include "layout/cuts.h"
#include "model/split_runs.h"

namespace megalith {
namespace {
using namespace testing_support;

TEST(SplitParameters, RunsOfAPartAreThePartWhereverItIsCutAgain) {
  for (const Family* family : {&gpt2_family, &llama_family, &bert_family})
    for (bool tied : {true, false})
      for (int rank = 0; rank < 3; rank++) {
        const ModelShape shape = shape_of({.name = "", .family = family, .tied = tied});
        for (const BlockSpec& block : list_blocks(shape, Mesh({.tensor = 3}, rank)))
          for (const ParameterSpec& p : block.parameters) {
            // By hand: element by element over (before, cut dimension, after).
            std::vector<int64_t> wanted;
            int64_t before = 1, after = 1;
            for (size_t d = 0; d < p.whole_shape.size(); d++)
              (d < p.cut.dimension ? before : after) *= d == p.cut.dimension && p.is_cut() ? 1 : p.whole_shape[d];
            if (!p.is_cut())
              for (int64_t i = 0; i < p.whole_size(); i++) wanted.push_back(i);
            for (int64_t i = 0; i < before && p.is_cut(); i++)
              for (const auto& range : p.cut.ranges)
                for (int64_t j = range.begin; j < range.end; j++)
                  for (int64_t k = 0; k < after; k++)
                    wanted.push_back((i * p.whole_shape[p.cut.dimension] + j) * after + k);
            ASSERT_EQ(p.size(), std::ssize(wanted)) << p.name;
            for (int64_t begin : {int64_t{0}, int64_t{1}, p.size() / 3})
              for (int64_t end : {begin, begin + 1, p.size() / 2, p.size()}) {
                int64_t next = begin;
                for_each_contiguous(p, begin, end, [&](int64_t from, int64_t here, int64_t count) {
                  ASSERT_EQ(here, next) << p.name;
                  for (int64_t i = 0; i < count; i++) ASSERT_EQ(wanted[static_cast<size_t>(here + i)], from + i) << p.name;
                  next += count;
                });
                EXPECT_EQ(next, std::max(begin, end)) << p.name;
              }
          }
      }
}

TEST(SplitParameters, AreCutExactlyWhereRanksDifferAndPartsAddUp) {
  const ModelShape shape = shape_of({.name = "", .family = &bert_family, .tied = false});
  const auto whole = list_blocks(shape);
  std::vector<std::vector<BlockSpec>> ranks;
  for (int rank = 0; rank < 4; rank++) ranks.push_back(list_blocks(shape, Mesh({.tensor = 4}, rank)));
  for (size_t b = 0; b < whole.size(); b++)
    for (size_t i = 0; i < whole[b].parameters.size(); i++) {
      const ParameterSpec& p = whole[b].parameters[i];
      EXPECT_FALSE(p.is_cut());
      int64_t sum = 0;
      for (const auto& rank : ranks) {
        const ParameterSpec& part = rank[b].parameters[i];
        EXPECT_EQ(part.name, p.name);
        EXPECT_EQ(part.whole_shape, p.shape);
        sum += part.size();
      }
      EXPECT_EQ(sum, (ranks[0][b].parameters[i].is_cut() ? 1 : 4) * p.size()) << p.name;
      const bool vector_of_all = p.name.find("LayerNorm") != std::string::npos || p.name.ends_with("output.dense.bias");
      const bool matrix_of_layer = whole[b].kind == BlockKind::layer && p.shape.size() == 2;
      EXPECT_FALSE(vector_of_all && ranks[0][b].parameters[i].is_cut()) << p.name;
      EXPECT_TRUE(!matrix_of_layer || ranks[0][b].parameters[i].is_cut()) << p.name;
    }
}

TEST(SplitContext, RanksHoldEveryPositionOnceAndSeeEquallyMuch) {
  for (int64_t ranks : {1, 2, 3, 4, 8})
    for (int64_t length : {1, 5, 16, 48, 101}) {
      std::vector<int> holders(static_cast<size_t>(length));
      for (int64_t rank = 0; rank < ranks; rank++) {
        const auto positions = context_positions(length, ranks, rank);
        EXPECT_EQ(std::ssize(positions), context_length(length, ranks, rank));
        EXPECT_TRUE(std::ranges::is_sorted(positions));
        int64_t seen = 0;
        for (int64_t t : positions) {
          holders[static_cast<size_t>(t)]++;
          seen += t + 1;
        }
        EXPECT_TRUE(length % (2 * ranks) != 0 || seen * ranks == length * (length + 1) / 2);
      }
      EXPECT_EQ(holders, std::vector<int>(static_cast<size_t>(length), 1));
    }
}

// Returns what a layer exchanges in a recomputation, with its input or its attention half kept.
AxisExchanges recomputed(Block& layer, const at::Tensor& x_SC, const Pass& pass, const Exchanges& exchanges, Keep keep) {
  Tape tape;
  layer.forward(x_SC, pass, &tape);
  if (keep == Keep::attention) tape.keep_attention();
  else tape = Tape();
  AxisExchanges exchanged;
  const auto now = [&](Axis axis) {
    return sent(axis == Axis::tensor ? exchanges.tensor : axis == Axis::context ? exchanges.context : exchanges.expert);
  };
  constexpr Axis kInside[] = {Axis::tensor, Axis::context, Axis::expert};
  for (Axis axis : kInside) exchanged[axis] = {now(axis).calls, now(axis).bytes};
  layer.recompute(x_SC, pass, tape);
  for (Axis axis : kInside)
    exchanged[axis] = {now(axis).calls - exchanged[axis].calls, now(axis).bytes - exchanged[axis].bytes};
  return exchanged;
}

TEST(SplitFacts, SayWhatIsSentAndKept) {
  struct Try {
    Model model;
    SplitOver layout;
  };
  const std::vector<Try> tries{
      {{.name = "gpt2"}, {3}},
      {{.name = "gpt2 dropping", .kept = 6}, {2, 2}},
      {{.name = "llama", .family = &llama_family, .heads = 8, .kv_heads = 4, .tied = false}, {4}},
      {{.name = "llama", .family = &llama_family, .heads = 8, .kv_heads = 4}, {1, 3}},
      {{.name = "llama", .family = &llama_family, .heads = 8, .kv_heads = 4}, {2, 2, kUlysses}},
      {sparse("experts", experts_of(Router::noisy)), {2}},
      {sparse("experts", experts_of(Router::softmax)), {1, 3}},
      {sparse("experts", experts_of(Router::sigmoid)), {2, 2, kUlysses}},
      {{.name = "bert", .family = &bert_family}, {2, 2}},
      {{.name = "bert dropping", .family = &bert_family, .kept = 5}, {3, 2, kUlysses}},
  };
  for (const auto& [model, layout] : tries) {
    SCOPED_TRACE(testing::Message() << model.name << ", tensor " << layout.tensor << ", context " << layout.context);
    const ModelShape shape = shape_of(model);
    MicroBatchShape micro{kSequences, kLength, 1.0, kMicros, model.kept, {}};
    if (model.kept) micro.dropping_layers = {1};
    // Ranks hold different numbers of kept rows. The facts give the exact bytes sent only for all ranks together.
    std::atomic<int64_t> tensor_bytes_off = 0, context_bytes_off = 0;
    run_ranks(layout.tensor, layout.context, layout.form, [&](const Exchanges& exchanges) {
      const RankResult result = run_rank(model, exchanges, at::kFloat);
      const auto facts = block_facts(shape, micro, Precision::fp32, Packing::fp32, exchanges.mesh);
      ExchangeFacts tensor, context;
      auto add = [](ExchangeFacts& sum, const ExchangeFacts& x) {
        sum = {sum.calls + kMicros * x.calls, sum.bytes + kMicros * x.bytes};
      };
      for (size_t b = 0; b < facts.size(); b++) {
        add(tensor, facts[b].forward.exchanges[Axis::tensor]);
        add(tensor, facts[b].backward.exchanges[Axis::tensor]);
        add(context, facts[b].forward.exchanges[Axis::context]);
        add(context, facts[b].backward.exchanges[Axis::context]);
        int64_t parameters = 0;
        for (const ParameterSpec& p : result.specs[b].parameters) parameters += p.size();
        EXPECT_EQ(facts[b].parameters, parameters);
      }
      EXPECT_EQ(result.tensor.calls, tensor.calls);
      EXPECT_EQ(result.context.calls, context.calls);
      tensor_bytes_off += result.tensor.bytes - tensor.bytes;
      context_bytes_off += result.context.bytes - context.bytes;
      if (model.kept == 0) {
        EXPECT_EQ(result.tensor.bytes, tensor.bytes);
        EXPECT_EQ(result.context.bytes, context.bytes);
      }
      // The tensors that layers keep on their tapes, besides the input from the previous block.
      auto blocks = make_blocks(shape, exchanges);
      const Pass pass = local_pass(whole_pass(model, shape.vocab, 0), exchanges.mesh);
      for (size_t b = 1; b + 1 < blocks.size(); b++) {
        const at::Tensor flat = tensor::zeros({blocks[b]->spec().flat_size}, at::kFloat);
        blocks[b]->bind(flat, {});
        Tape tape;
        at::Tensor x = tensor::zeros({pass.rows(), shape.hidden}, at::kFloat);
        EXPECT_EQ(static_cast<int64_t>(blocks[b]->forward(x, pass, &tape).nbytes()), facts[b].output_bytes);
        int64_t kept = -static_cast<int64_t>(x.nbytes());
        while (!tape.empty()) kept += static_cast<int64_t>(tape.take().storage().nbytes());
        EXPECT_EQ(std::max<int64_t>(kept, 0), facts[b].saved_bytes);
        for (Keep keep : {Keep::attention, Keep::input}) {
          const AxisExchanges again = recomputed(*blocks[b], x, pass, exchanges, keep);
          const AxisExchanges expected = facts[b].again(keep, false).exchanges;
          for (Axis axis : {Axis::tensor, Axis::context}) {
            EXPECT_EQ(again[axis].calls, expected[axis].calls) << name_of(axis);
            if (model.kept == 0) EXPECT_EQ(again[axis].bytes, expected[axis].bytes) << name_of(axis);
          }
        }
      }
    });
    EXPECT_EQ(tensor_bytes_off, 0);
    EXPECT_EQ(context_bytes_off, 0);
  }
}

TEST(SplitFacts, SayHowOftenRowsTravelToTheirExperts) {
  const Model model = sparse("experts", experts_of(Router::softmax));
  const ModelShape shape = shape_of(model);
  run_ranks(1, 1, kRing, [&](const Exchanges& exchanges) {
    static_cast<ThreadExchange*>(exchanges.expert)->worth = 1 << 20;  // ranks borrow no expert
    const auto facts = block_facts(shape, {kSequences, kLength}, Precision::fp32, Packing::fp32, exchanges.mesh);
    auto blocks = make_blocks(shape, exchanges);
    const Pass pass = local_pass(whole_pass(model, shape.vocab, exchanges.mesh.coordinate(Axis::expert)), exchanges.mesh);
    const auto parameters = normal({blocks[1]->spec().flat_size}, 5, at::kFloat);
    blocks[1]->bind(parameters, tensor::zeros_like(parameters));
    const at::Tensor x = normal({pass.rows(), shape.hidden}, 6, at::kFloat);
    const auto calls = [&](const auto& work) {
      const int64_t before = sent(exchanges.expert).calls;
      work();
      return sent(exchanges.expert).calls - before;
    };
    Tape tape;
    EXPECT_EQ(calls([&] { blocks[1]->forward(x, pass, &tape); }), facts[1].forward.exchanges[Axis::expert].calls);
    EXPECT_EQ(calls([&] { blocks[1]->backward(x, pass, tape); }), facts[1].backward.exchanges[Axis::expert].calls);
    for (Keep keep : {Keep::attention, Keep::input})
      EXPECT_EQ(recomputed(*blocks[1], x, pass, exchanges, keep)[Axis::expert].calls,
                facts[1].again(keep, false).exchanges[Axis::expert].calls);
  }, 2);
}

std::string complaint(const ModelShape& shape, const Layout& layout) {
  try {
    check_layout(shape, layout);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(SplitChecks, NameWhatDoesNotDivideAndWhatDoes) {
  ModelShape shape = shape_of({.name = "", .family = &llama_family, .heads = 8, .kv_heads = 4});
  shape.ffn = 36;
  EXPECT_EQ(complaint(shape, {.tensor = 4}), "no error");
  EXPECT_EQ(complaint(shape, {.tensor = 3}), "parallel.tensor: expected a divisor of model.heads (8), got 3; use 1, 2 or 4");
  EXPECT_EQ(complaint(shape, {.tensor = 8}),
            "parallel.tensor: expected a divisor of model.kv_heads (4), got 8; use 1, 2 or 4");
  shape.ffn = 30;
  EXPECT_EQ(complaint(shape, {.tensor = 4}), "parallel.tensor: expected a divisor of model.ffn (30), got 4; use 1 or 2");
  EXPECT_EQ(complaint(shape, {.context = 3}), "no error");
  EXPECT_EQ(complaint(shape, {.context = 3, .context_form = kUlysses}),
            "parallel.context: expected a divisor of model.heads (8), got 3; use 1, 2 or 4");
  EXPECT_EQ(complaint(shape, {.context = 4, .tensor = 2, .context_form = kUlysses}),
            "parallel.context: expected a divisor of model.kv_heads / parallel.tensor (2), got 4; use 1 or 2");
  EXPECT_THROW(list_blocks(shape, Mesh({.tensor = 3})), UserError);
  EXPECT_EQ(complaint(shape, {.data = 2, .expert = 2}),
            "parallel.expert: expected 1, because the model has no experts, got 2; remove it, or set model.experts.count");
  shape.experts = experts_of(Router::softmax, 6);
  EXPECT_EQ(complaint(shape, {.data = 3, .expert = 3}), "no error");
  EXPECT_EQ(complaint(shape, {.data = 4, .expert = 4}),
            "parallel.expert: expected a divisor of model.experts.count (6), got 4; use 1, 2, 3 or 6");
  shape.experts = {};
  shape.vocab = 1;
  EXPECT_EQ(complaint(shape, {.tensor = 2}), "parallel.tensor: expected at most model.vocab (1), got 2");
}

}  // namespace
}  // namespace megalith
