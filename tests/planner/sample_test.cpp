#include "planner/sample.h"

#include <gtest/gtest.h>

#include "config/presets.h"
#include "families/family.h"
#include "families/list.h"

namespace megalith {
namespace {

Workload work_of(const char* preset, int64_t sequences, int64_t length) {
  Workload work{find_preset(preset).shape, {sequences, length}};
  fill_defaults(work.shape);
  return work;
}

double flop(const BlockFacts& facts) { return facts.forward.flop + facts.backward.flop; }

// A call of a sample must take about a second on a slow machine, not minutes.
TEST(Sample, ALargeModelIsRepresentedByASmallOneWithTheSameMixOfWork) {
  for (const char* preset : {"gpt2-124m", "llama-1b", "llama-7b", "qwen2-0.5b"}) {
    const Workload work = work_of(preset, 2, 1024);
    for (const MeasuredBlock& block : {measured_layer(work), measured_head(work)}) {
      EXPECT_LE(flop(block.of_sample), 60e9) << preset;
      EXPECT_GT(flop(block.of_sample), 5e9) << preset;
      EXPECT_GT(block.flop(), flop(block.of_sample)) << preset;
    }
    const Workload sample = measured_layer(work).sample;
    const auto attention = [](const Workload& w) {
      return static_cast<double>(w.micro.length) / static_cast<double>(w.shape.attention_width());
    };
    EXPECT_GT(attention(sample), 0.3 * attention(work)) << preset;
    EXPECT_EQ(sample.shape.head_dim(), work.shape.head_dim()) << preset;
    EXPECT_EQ(sample.shape.heads % sample.shape.kv_heads, 0) << preset;
  }
}

TEST(Sample, ASmallModelIsItsOwnSample) {
  Workload work{{&llama_family, 2, 256, 4, 2, 1024, 4096, 64}, {4, 64}};
  EXPECT_EQ(describe(measured_layer(work).sample), describe(work));
  EXPECT_EQ(describe(measured_head(work).sample), describe(work));
}

TEST(Sample, SizesThatNoMachineHasEndInASmallSample) {
  Workload work = work_of("llama-7b", 1'000'000, 1'000'000);
  work.shape.hidden = work.shape.ffn = 1'000'000;
  work.shape.heads = work.shape.kv_heads = 1;  // cannot be narrower
  work.shape.vocab = 10'000'000;
  work.micro.sequences = 1;
  EXPECT_LT(measured_layer(work).sample.micro.tokens(), 1024);
  EXPECT_LT(measured_head(work).sample.shape.vocab, 20'000);
}

}  // namespace
}  // namespace megalith
