// The peak that the plan predicts from shapes alone against what the allocator saw.
#include <gtest/gtest.h>

#include "engine/support.h"
#include "memory/allocator.h"
#include "schedule/predict/memory.h"

namespace megalith {
namespace {
using namespace testing_support;

struct Case {
  std::string name;
  Arch arch;
  int64_t sequences, length;
  int32_t micros = 1;
  int64_t hidden = 256, layers = 4, vocab = 2000;
  Precision precision = Precision::fp32;
  Dropout dropout = {};
  bool tied = true;
  bool prefix = false;
  OptimizerKind optimizer = OptimizerKind::adamw;
  int64_t head_size = 0;  // with biases, as the two come together in the models that have either
  int64_t kept = 0;       // tokens, in every layer
  Packing state = Packing::fp32, activations = Packing::fp32;
  Keep keep = Keep::all;  // every layer's
  Experts experts = {};
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class PeakMemory : public testing::TestWithParam<Case> {};

double mib(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

TEST_P(PeakMemory, IsWithinAFifthOfThePrediction) {
  const Case& c = GetParam();
  install_allocator();
  ModelShape shape = default_shape(c.arch);
  shape.layers = c.layers;
  shape.hidden = c.hidden;
  shape.heads = c.hidden / 64;
  shape.kv_heads = c.arch == Arch::llama ? std::max<int64_t>(1, shape.heads / 2) : 0;
  shape.vocab = c.vocab;
  shape.context = c.length;
  shape.tied = c.tied;
  shape.dropout = c.dropout;
  shape.head_size = c.head_size;
  shape.qkv_bias = c.head_size > 0;
  shape.experts = c.experts;
  fill_defaults(shape);
  TrainSettings settings = settings_with(c.optimizer);
  settings.precision = c.precision;
  settings.optimizer_state = c.state;
  settings.activations = c.activations;
  Batch batch = random_batch(shape, c.sequences, c.length);
  if (c.prefix) batch.prefix.assign(static_cast<size_t>(c.sequences), c.length / 2);

  const int64_t before = allocated_memory().live;
  auto engine = make_engine(shape, settings);
  double targets = static_cast<double>(batch.target_count()) / static_cast<double>(batch.targets.size());
  MicroBatchShape micro{c.sequences / c.micros, c.length, targets, c.micros, c.kept, {}};
  for (int64_t layer = 0; layer < c.layers; layer++) micro.dropping_layers.push_back(layer);
  batch.dropping = {c.kept, micro.dropping_layers, {}};
  auto facts = block_facts(shape, micro, c.precision, c.activations);
  for (size_t b = 0; b < facts.size(); b++)
    facts[b].optimizer_bytes = engine->model().optimizer_bytes(static_cast<BlockId>(b));
  std::vector<Keep> keep(facts.size(), c.keep);
  keep.front() = keep.back() = Keep::all;
  Schedule step = training_step(facts, c.micros, ComputeOrder::by_micro, keep);
  MemoryLedger ledger(step);
  for (OpId op = 0; op < static_cast<OpId>(step.ops.size()); op++) ledger.start(op), ledger.finish(op);
  const MemoryBound bound = memory_bound(step, HappensBefore(step));

  reset_memory_peak();
  for (int i = 0; i < 2; i++) engine->run(step, {&batch, i, 1e-3, nullptr});
  const AllocatedMemory use = allocated_memory();
  const int64_t measured = use.peak - before;
  const int64_t kept = resident(step).total();
  std::printf("  %-20s predicted %7.1f MiB, measured %7.1f MiB: %+5.1f%%; beyond parameters and state %6.1f, %6.1f MiB: "
              "%+5.1f%%; at %s\n",
              c.name.c_str(), mib(bound.bytes), mib(measured), 100.0 * (mib(bound.bytes) / mib(measured) - 1),
              mib(bound.bytes - kept), mib(measured - kept),
              100.0 * (mib(bound.bytes - kept) / mib(measured - kept) - 1), describe(step, bound.op).c_str());
  EXPECT_EQ(ledger.peak().total(), bound.bytes);  // one lane computes: the bound is the thing itself
  EXPECT_LT(static_cast<double>(bound.bytes), 1.2 * static_cast<double>(measured));
  EXPECT_GT(static_cast<double>(bound.bytes), 0.95 * static_cast<double>(measured));
  // Parameters and state are easily known and hide errors: what comes and goes must fit on its own.
  EXPECT_LT(static_cast<double>(bound.bytes - kept), 1.2 * static_cast<double>(measured - kept));
  EXPECT_GT(static_cast<double>(bound.bytes - kept), 0.9 * static_cast<double>(measured - kept));
}

constexpr Dropout kResidual{0.1, 0.1, 0}, kAll{0.1, 0.1, 0.1};
constexpr OptimizerKind kAdamW = OptimizerKind::adamw;
constexpr Precision kFp32 = Precision::fp32, kBf16 = Precision::bf16;

// With a vocabulary of 300 the peak is in a layer, with 2000 and more mostly in the head.
INSTANTIATE_TEST_SUITE_P(
    Shapes, PeakMemory,
    testing::Values(
        Case{"Gpt2", Arch::gpt2, 8, 128}, Case{"Llama", Arch::llama, 8, 128}, Case{"Bert", Arch::bert, 8, 128},
        Case{"Gpt2Micros", Arch::gpt2, 8, 128, 4}, Case{"LlamaMicros", Arch::llama, 8, 128, 4},
        Case{"BertMicros", Arch::bert, 8, 128, 4}, Case{"Gpt2Long", Arch::gpt2, 2, 512, 1, 256, 4, 300},
        Case{"LlamaLong", Arch::llama, 2, 512, 1, 256, 4, 300}, Case{"BertLong", Arch::bert, 2, 512},
        Case{"Gpt2Vocabulary", Arch::gpt2, 8, 128, 1, 128, 2, 30000},
        Case{"LlamaVocabulary", Arch::llama, 8, 128, 1, 128, 2, 30000},
        Case{"BertVocabulary", Arch::bert, 8, 128, 1, 128, 2, 30000}, Case{"Gpt2OneLayer", Arch::gpt2, 8, 128, 1, 256, 1},
        Case{"LlamaOneLayer", Arch::llama, 8, 128, 1, 256, 1}, Case{"BertOneLayer", Arch::bert, 8, 128, 1, 256, 1},
        Case{"Gpt2Residual", Arch::gpt2, 8, 128, 1, 256, 4, 300, kFp32, kResidual},
        Case{"LlamaResidual", Arch::llama, 8, 128, 1, 256, 4, 300, kFp32, kResidual},
        Case{"BertResidual", Arch::bert, 8, 128, 1, 256, 4, 300, kFp32, kResidual},
        Case{"Gpt2Dropout", Arch::gpt2, 4, 256, 1, 256, 2, 300, kFp32, kAll},
        Case{"LlamaDropout", Arch::llama, 4, 256, 1, 256, 2, 300, kFp32, kAll},
        Case{"BertDropout", Arch::bert, 4, 256, 1, 256, 2, 300, kFp32, kAll},
        Case{"LlamaPrefix", Arch::llama, 4, 256, 1, 256, 2, 300, kFp32, {}, true, true},
        Case{"LlamaUntied", Arch::llama, 8, 128, 1, 256, 4, 2000, kFp32, {}, false},
        Case{"Gpt2Sgd", Arch::gpt2, 8, 128, 1, 256, 4, 2000, kFp32, {}, true, false, OptimizerKind::sgd},
        Case{"LlamaWideHeads", Arch::llama, 4, 256, 1, 256, 2, 300, kFp32, {}, true, false, kAdamW, 128},
        Case{"LlamaNarrowHeads", Arch::llama, 4, 256, 1, 256, 2, 300, kFp32, {}, true, false, kAdamW, 16},
        Case{"LlamaWideHeadsDropout", Arch::llama, 4, 256, 1, 256, 2, 300, kFp32, kAll, true, false, kAdamW, 128},
        Case{"Gpt2Dropping", Arch::gpt2, 2, 512, 1, 256, 6, 300, kFp32, {}, true, false, kAdamW, 0, 256},
        Case{"LlamaDropping", Arch::llama, 2, 512, 1, 256, 6, 300, kFp32, {}, true, false, kAdamW, 0, 256},
        Case{"BertDropping", Arch::bert, 2, 512, 1, 256, 6, 300, kFp32, {}, true, false, kAdamW, 0, 128},
        Case{"Gpt2DroppingMicros", Arch::gpt2, 8, 128, 4, 256, 6, 300, kFp32, kResidual, true, false, kAdamW, 0, 40},
        Case{"LlamaDroppingFew", Arch::llama, 2, 512, 1, 256, 6, 300, kFp32, {}, true, false, kAdamW, 0, 64},
        Case{"LlamaDroppingMost", Arch::llama, 2, 512, 1, 256, 6, 300, kFp32, {}, true, false, kAdamW, 0, 480},
        Case{"LlamaDroppingBf16", Arch::llama, 2, 512, 1, 256, 6, 300, kBf16, {}, true, false, kAdamW, 0, 256},
        Case{"Gpt2Bf16", Arch::gpt2, 4, 128, 1, 256, 2, 300, kBf16},
        Case{"LlamaBf16", Arch::llama, 4, 128, 1, 256, 2, 300, kBf16},
        Case{"BertBf16", Arch::bert, 4, 128, 1, 256, 2, 300, kBf16}),
    [](const auto& test) { return test.param.name; });

Case packed(std::string name, Arch arch, Packing state) {
  return {name, arch, 8, 128, 1, 256, 4, 300, kFp32, {}, true, false, kAdamW, 0, 0, state};
}

INSTANTIATE_TEST_SUITE_P(Packed, PeakMemory,
                         testing::Values(packed("Gpt2State16", Arch::gpt2, Packing::bf16),
                                         packed("Gpt2State8", Arch::gpt2, Packing::int8),
                                         packed("LlamaState8", Arch::llama, Packing::int8)),
                         [](const auto& test) { return test.param.name; });

Case recomputing(std::string name, Arch arch, Keep keep, int64_t kept = 0) {
  return {name, arch, 8, 128, 1, 256, 8, 300, kFp32, {}, true, false, kAdamW, 0, kept, Packing::fp32, Packing::fp32, keep};
}

INSTANTIATE_TEST_SUITE_P(Recomputing, PeakMemory,
                         testing::Values(recomputing("Gpt2Selective", Arch::gpt2, Keep::attention),
                                         recomputing("LlamaSelective", Arch::llama, Keep::attention),
                                         recomputing("BertSelective", Arch::bert, Keep::attention),
                                         recomputing("Gpt2Full", Arch::gpt2, Keep::input),
                                         recomputing("LlamaFull", Arch::llama, Keep::input),
                                         recomputing("BertFull", Arch::bert, Keep::input),
                                         recomputing("Gpt2SelectiveDropping", Arch::gpt2, Keep::attention, 64),
                                         recomputing("Gpt2FullDropping", Arch::gpt2, Keep::input, 64),
                                         recomputing("LlamaFullDroppingFew", Arch::llama, Keep::input, 8),
                                         recomputing("LlamaFullDroppingMost", Arch::llama, Keep::input, 120),
                                         recomputing("BertFullDropping", Arch::bert, Keep::input, 64)),
                         [](const auto& test) { return test.param.name; });

Case sparse(std::string name, const Experts& experts, Keep keep = Keep::all, Precision precision = kFp32,
            Packing activations = Packing::fp32) {
  return {name, Arch::llama, 8,      128, 1, 256,           4,           300,  precision, {},
          true, false,       kAdamW, 0,   0, Packing::fp32, activations, keep, experts};
}

INSTANTIATE_TEST_SUITE_P(
    Experts, PeakMemory,
    testing::Values(sparse("Softmax", {.count = 8}), sparse("SoftmaxNarrow", {.count = 16, .top_k = 4, .ffn = 96}),
                    sparse("SoftmaxShared", {.count = 4, .top_k = 1, .ffn = 128, .shared = 512}),
                    sparse("SoftmaxFull", {.count = 8}, Keep::input),
                    sparse("SoftmaxSelective", {.count = 8}, Keep::attention),
                    sparse("SwitchCapacity", {.count = 8, .router = Router::switch_, .capacity = 8, .jitter = 0.1}),
                    sparse("Softmax16", {.count = 4}, Keep::all, kBf16),
                    sparse("SoftmaxActivations8", {.count = 8}, Keep::all, kFp32, Packing::int8)),
    [](const auto& test) { return test.param.name; });

Case packing(std::string name, Arch arch, Packing activations, Dropout dropout = {}, Keep keep = Keep::all,
             int64_t kept = 0) {
  return {name, arch,  8,      128, 1,    256,           8,           300, kFp32, dropout,
          true, false, kAdamW, 0,   kept, Packing::fp32, activations, keep};
}

INSTANTIATE_TEST_SUITE_P(PackedActivations, PeakMemory,
                         testing::Values(packing("Gpt2Activations16", Arch::gpt2, Packing::bf16),
                                         packing("Gpt2Activations8", Arch::gpt2, Packing::int8),
                                         packing("Gpt2Activations8Dropout", Arch::gpt2, Packing::int8, kResidual),
                                         packing("Gpt2Activations8Full", Arch::gpt2, Packing::int8, {}, Keep::input),
                                         packing("Gpt2Activations8Dropping", Arch::gpt2, Packing::int8, {}, Keep::all, 64),
                                         packing("LlamaActivations16", Arch::llama, Packing::bf16),
                                         packing("LlamaActivations8", Arch::llama, Packing::int8),
                                         packing("BertActivations16", Arch::bert, Packing::bf16),
                                         packing("BertActivations8", Arch::bert, Packing::int8)),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace megalith
