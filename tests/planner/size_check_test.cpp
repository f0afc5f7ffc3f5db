#include "planner/size_check.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "config/presets.h"
#include "engine/slot_format.h"
#include "families/family.h"
#include "families/list.h"
#include "planner/input.h"

namespace megalith {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

Config tiny(const Family& family) {
  Config config;
  config.model.shape = {&family, 2, 32, 4, 4, 0, 128, 500, 64};
  config.data.sequence = 32;
  config.train.batch = 4;
  config.train.threads = 1;
  return config;
}

// Returns the key that the error names; empty if the size can be planned.
std::string refused(const Config& config, int64_t budget = 16 * kGiB) {
  try {
    check_plan_size(input_of(config), budget);
    return "";
  } catch (const UserError& error) {
    return error.parts.key;
  }
}

TEST(SizeCheck, UsualModelsCanBePlanned) {
  EXPECT_EQ(refused(tiny(llama_family)), "");
  for (const char* preset : {"gpt2-124m", "llama-7b"}) {
    Config config = tiny(llama_family);
    config.model.shape = find_preset(preset).shape;
    fill_defaults(config.model.shape);
    config.train.batch = 1024;
    EXPECT_EQ(refused(config), "") << preset;
  }
}

TEST(SizeCheck, ListsWithoutEndAreRefusedByTheSettingThatMakesThem) {
  Config deep = tiny(llama_family), sparse = tiny(llama_family), many = tiny(gpt2_family), prime = tiny(gpt2_family);
  deep.model.shape.layers = 100'000;
  EXPECT_EQ(refused(deep), "model.layers");
  sparse.model.shape.experts.count = 100'000;
  sparse.model.shape.experts.top_k = 2;
  sparse.model.shape.experts.ffn = 128;
  EXPECT_EQ(refused(sparse), "model.experts.count");
  sparse.model.shape.experts.count = 8;
  EXPECT_EQ(refused(sparse), "");
  many.train.batch = 65'536;
  EXPECT_EQ(refused(many), "") << "cut into 512 micro-batches";
  many.train.micro_batch = 1;
  EXPECT_EQ(refused(many), "train.batch");
  prime.train.batch = 999'983;  // only one sequence at a time divides it
  EXPECT_EQ(refused(prime), "train.batch");
}

TEST(SizeCheck, SumsThatNoNumberHoldsAreRefused) {
  Config config = tiny(gpt2_family);
  config.model.shape.hidden = config.model.shape.heads = config.model.shape.kv_heads = 1'000'000;
  config.model.shape.ffn = 10'000'000;
  config.model.shape.context = config.data.sequence = 1'000'000'000;
  config.train.batch = config.train.micro_batch = 1'000'000'000;
  EXPECT_EQ(refused(config), "memory.ram");
}

TEST(SizeCheck, WhatMemoryAndDiskTogetherCannotHoldIsRefused) {
  Config config = tiny(llama_family);
  config.model.shape.hidden = 400'000;
  config.model.shape.ffn = 1'000'000;
  EXPECT_EQ(refused(config), "") << "without a disk, the table of a whole plan says more";
  config.memory.spill = testing::TempDir();
  EXPECT_EQ(refused(config), "memory.spill");
  config.model.shape.hidden = 32;
  config.model.shape.ffn = 128;
  EXPECT_EQ(refused(config), "");
}

// The size of a slot is computed without its list of chunks. It must equal the size from the list.
TEST(SizeCheck, TheSizeOfASlotIsThatOfItsList) {
  ModelShape shape = tiny(llama_family).model.shape;
  shape.hidden = 500;
  shape.heads = shape.kv_heads = 10;
  shape.ffn = 1331;
  shape.experts = {.count = 3, .top_k = 2, .ffn = 700};
  for (const BlockSpec& spec : list_blocks(shape))
    for (Packing packing : {Packing::fp32, Packing::bf16, Packing::int8})
      for (const Segment& part : spec.segments) {
        const FlatRange half{part.range.begin, part.range.begin + part.range.size() / 2 / kFlatAlign * kFlatAlign};
        for (const FlatRange& range : {part.range, half}) {
          const SlotFormat listed(spec, packing, range);
          const SlotSize size = slot_size(spec, packing, range);
          int64_t most = 0;
          for (int64_t chunk = 0; chunk < listed.chunks(); chunk++) {
            int64_t scales = 0;
            for (const SlotFormat::ParameterRange& piece : listed.pieces(chunk)) scales += piece.scales;
            most = std::max(most, scales);
          }
          EXPECT_EQ(size.most_scales, most) << spec.name;
          EXPECT_EQ(size.elements, range.size());
          EXPECT_EQ(size.bytes(), packed_bytes(packing) * range.size() + size.chunks() * 4 * most) << spec.name;
        }
      }
}

}  // namespace
}  // namespace megalith
