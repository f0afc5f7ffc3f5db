// Compares the memory that the facts predict for a split block with the peak of the allocator. One rank runs alone and
// receives zeros, which take the same memory as real messages.
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include "config/presets.h"
#include "families/blocks.h"
#include "memory/allocator.h"
#include "families/facts.h"
#include "model/absent_ranks.h"
#include "model/local_rows.h"
#include "model/support.h"
#include "model/tensor_ops.h"
#include "model/thread_ranks.h"

namespace megalith {
namespace {
using namespace testing_support;

struct Case {
  std::string name;
  const Family* family;
  int64_t tensor = 1, context = 1;
  ContextForm form = ContextForm::ring;
  Dropout dropout = {};
  int64_t kept = 0;
  Precision precision = Precision::fp32;
  Experts experts = {};
  int64_t expert = 1;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class SplitMemory : public testing::TestWithParam<Case> {};

TEST_P(SplitMemory, IsWhatTheFactsSay) {
  const Case& c = GetParam();
  install_allocator();
  c10::InferenceMode no_graph;
  at::set_num_threads(1);
  ModelShape shape = default_shape(*c.family);
  shape.layers = 2;
  shape.hidden = 256;
  shape.heads = 8;
  shape.kv_heads = c.family == &llama_family ? 4 : 0;
  shape.vocab = 3000;
  shape.context = 512;
  shape.dropout = c.dropout;
  shape.experts = c.experts;
  fill_defaults(shape);
  AbsentRanks tensor(c.tensor, 1 % c.tensor), context(c.context, 1 % c.context), expert(c.expert, 0);
  const auto rank = static_cast<int>(tensor.rank() + c.tensor * context.rank());
  const Exchanges exchanges{Mesh(layout_of(c.tensor, c.context, c.form, c.expert), rank),
                            c.tensor > 1 ? &tensor : nullptr, c.context > 1 ? &context : nullptr,
                            c.expert > 1 ? &expert : nullptr};
  const auto type = c.precision == Precision::bf16 ? at::kBFloat16 : at::kFloat;
  MicroBatchShape micro{4, 512, 1.0, 1, c.kept, {}};
  Pass whole;
  whole.sequences = micro.sequences;
  whole.length = micro.length;
  whole.ids_N = ids(micro.tokens(), shape.vocab, 1);
  whole.targets_N = ids(micro.tokens(), shape.vocab, 2);
  whole.visibility = c.family == &bert_family ? Visibility::all : Visibility::causal;
  whole.dropout = c.dropout.any();
  if (c.kept > 0) {
    micro.dropping_layers = {1};
    whole.dropping = {c.kept, {1}, {}};
  }
  const Pass pass = local_pass(whole, exchanges.mesh);
  const auto facts = block_facts(shape, micro, c.precision, Packing::fp32, exchanges.mesh);
  auto blocks = make_blocks(shape, exchanges);
  std::vector<at::Tensor> buffers;
  for (auto& block : blocks) {
    buffers.push_back(normal({block->spec().flat_size}, 3, type).mul_(0.02));
    buffers.push_back(tensor::zeros({block->spec().flat_size}, at::kFloat));
    block->bind(buffers[buffers.size() - 2], buffers.back());
  }
  auto& head = static_cast<HeadBlock&>(*blocks.back());
  if (shape.tied) head.tie(static_cast<EmbeddingBlock&>(*blocks.front()).table());

  // Returns the peak of allocated bytes during `work`, minus the bytes that were live before it.
  auto above = [](const auto& work) {
    const int64_t before = allocated_memory().live;
    reset_memory_peak();
    work();
    return allocated_memory().peak - before;
  };
  auto expect = [&](const BlockFacts& f, const char* what, int64_t predicted, int64_t measured, int64_t beside) {
    const double p = static_cast<double>(predicted + beside), m = static_cast<double>(measured + beside);
    std::printf("  %-22s %-10s %-8s predicted %7.2f, measured %7.2f MiB: %+5.1f%%\n", c.name.c_str(), f.name.c_str(), what,
                p / (1 << 20), m / (1 << 20), 100 * (p / m - 1));
    EXPECT_GT(p, 0.97 * m) << f.name << " " << what;
    return p / m;
  };
  // With experts over ranks, the facts count the most rows that a rank can receive. With dropped tokens, they count the most
  // kept tokens that a rank can hold.
  const double most = c.expert > 1 ? static_cast<double>(c.expert) + 0.5 : c.kept > 0 ? 1.3 : c.experts.any() ? 1.25 : 1.1;
  for (const bool defers_weight_gradients : {false, true}) {
    std::vector<Tape> tapes(blocks.size(), Tape(Packing::fp32, defers_weight_gradients));
    at::Tensor x, g;
    for (size_t b = 0; b + 1 < blocks.size(); b++) {
      const BlockFacts& f = facts[b];
      const at::Tensor input = x;
      const int64_t measured = above([&] { x = blocks[b]->forward(input, pass, &tapes[b]); });
      // Forward needs no more than backward, which also has the incoming gradient.
      expect(f, "forward", f.saved_bytes + 2 * f.output_bytes + f.workspace_bytes, measured, 0);
    }
    const BlockFacts& of_head = facts.back();
    const int64_t before_head = facts[facts.size() - 2].output_bytes;
    EXPECT_LT(expect(of_head, "loss", before_head + of_head.workspace_bytes,
                     above([&] { head.loss_and_gradient(x, pass, g); }), before_head), 1.15);
    x.reset();
    for (size_t b = blocks.size() - 1; b-- > 0;) {
      const BlockFacts& f = facts[b];
      const int64_t input = b > 0 ? facts[b - 1].output_bytes : 0;
      at::Tensor incoming = std::move(g);
      const bool defers = defers_weight_gradients && f.kind == BlockKind::layer;
      const int64_t work = defers ? f.deferring_workspace_bytes + f.deferred_bytes : f.workspace_bytes + f.sparse_gradient_bytes;
      const int64_t measured = above([&] { g = blocks[b]->backward(incoming, pass, tapes[b]); });
      const double ratio =
          expect(f, defers ? "in two" : "backward", input + work, measured, input + f.saved_bytes + f.output_bytes);
      EXPECT_LT(ratio, f.kind == BlockKind::layer ? most : 2.0) << f.name;  // the peak of a step is never in the embedding
      if (!defers) continue;
      incoming.reset();
      const int64_t before = allocated_memory().live;
      const int64_t weighing = above([&] { tapes[b].run_deferred(); });
      EXPECT_LT(expect(f, "waiting", f.deferred_bytes, before - allocated_memory().live, 0), c.expert > 1 ? most : 1.1)
          << f.name;
      EXPECT_LE(weighing, f.weight_gradient_workspace_bytes + (1 << 16)) << f.name;  // 64 KiB for the sums of bias gradients
    }
    static_cast<EmbeddingBlock&>(*blocks.front()).fold();
  }
}

constexpr Dropout kResidual{0.1, 0.1, 0};
constexpr ContextForm kRing = ContextForm::ring, kUlysses = ContextForm::ulysses;

const Experts kExperts = [] {
  Experts x;
  x.count = 8;
  x.top_k = 2;
  return x;
}();
const Experts kWithShared = [] {
  Experts x = kExperts;
  x.ffn = 128;  // narrower than `hidden`, so that the sent rows are the largest tensors
  x.shared = 1024;
  return x;
}();

INSTANTIATE_TEST_SUITE_P(
    Layouts, SplitMemory,
    testing::Values(Case{"Gpt2Whole", &gpt2_family}, Case{"Gpt2Tensor2", &gpt2_family, 2}, Case{"Gpt2Tensor4", &gpt2_family, 4},
                    Case{"Gpt2Tensor2Dropout", &gpt2_family, 2, 1, kRing, kResidual}, Case{"Gpt2Ring2", &gpt2_family, 1, 2},
                    Case{"Gpt2Ulysses4", &gpt2_family, 1, 4, kUlysses}, Case{"Gpt2Both", &gpt2_family, 2, 2},
                    Case{"Gpt2Dropping", &gpt2_family, 2, 2, kRing, {}, 200},
                    Case{"Gpt2DroppingWhole", &gpt2_family, 1, 1, kRing, {}, 200},
                    Case{"LlamaDroppingTensor4", &llama_family, 4, 1, kRing, {}, 400},
                    Case{"LlamaDroppingRing4", &llama_family, 1, 4, kRing, {}, 256},
                    Case{"BertDroppingUlysses2", &bert_family, 1, 2, kUlysses, kResidual, 256},
                    Case{"LlamaTensor2", &llama_family, 2},
                    Case{"LlamaTensor4Dropout", &llama_family, 4, 1, kRing, kResidual}, Case{"LlamaRing4", &llama_family, 1, 4},
                    Case{"LlamaUlysses2", &llama_family, 1, 2, kUlysses}, Case{"LlamaBoth", &llama_family, 2, 2, kUlysses},
                    Case{"BertTensor2", &bert_family, 2}, Case{"BertTensor4Dropout", &bert_family, 4, 1, kRing, kResidual},
                    Case{"BertRing2", &bert_family, 1, 2}, Case{"BertBoth", &bert_family, 2, 2},
                    Case{"LlamaBf16Both", &llama_family, 2, 2, kRing, {}, 0, Precision::bf16},
                    Case{"ExpertsWhole", &llama_family, 1, 1, kRing, {}, 0, Precision::fp32, kExperts},
                    Case{"ExpertsTensor2", &llama_family, 2, 1, kRing, {}, 0, Precision::fp32, kExperts},
                    Case{"ExpertsTensor4Dropout", &llama_family, 4, 1, kRing, kResidual, 0, Precision::fp32, kExperts},
                    Case{"ExpertsRing2", &llama_family, 1, 2, kRing, {}, 0, Precision::fp32, kExperts},
                    Case{"ExpertsBoth", &llama_family, 2, 2, kUlysses, {}, 0, Precision::fp32, kExperts},
                    Case{"ExpertsSpread2", &llama_family, 1, 1, kRing, {}, 0, Precision::fp32, kExperts, 2},
                    Case{"ExpertsSpread4Tensor2", &llama_family, 2, 1, kRing, {}, 0, Precision::fp32, kExperts, 4},
                    Case{"SharedWhole", &llama_family, 1, 1, kRing, {}, 0, Precision::fp32, kWithShared},
                    Case{"SharedSpread2", &llama_family, 1, 1, kRing, {}, 0, Precision::fp32, kWithShared, 2},
                    Case{"SharedSpread2Bf16", &llama_family, 1, 1, kRing, {}, 0, Precision::bf16, kWithShared, 2}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace megalith
