// Compares packed optimizer state with the definition of the codes, computed in another way.
#include "optim/packed_state.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "optim/block_code.h"
#include "optim/random_bits.h"
#include "optim/trial.h"

namespace megalith {
namespace {

// Returns the number that a code stands for, with scale 1. It follows the description in block_code.h: from one power of two
// to the next, the codes cover four octaves, with equal steps within each.
double meaning(int code) {
  if (code == 0) return 0;
  const int decade = static_cast<int>(std::floor(std::log2(code)));
  const int per_octave_bits = decade - 2, place = code - (1 << decade);
  const int octave = place >> per_octave_bits, step = place & ((1 << per_octave_bits) - 1);
  return std::ldexp(1.0 + std::ldexp(step, -per_octave_bits), -4 * (8 - decade) + octave);
}

TEST(BlockCode, DecodesWhatItsDescriptionSays) {
  std::vector<uint8_t> codes;
  for (int c = 4; c < 256; c++) codes.push_back(static_cast<uint8_t>(c));
  codes.push_back(0);
  std::vector<float> values(codes.size());
  decode_block(codes, false, 3.0f, values.data());
  for (size_t i = 0; i < codes.size(); i++) EXPECT_EQ(values[i], static_cast<float>(3 * meaning(codes[i]))) << int{codes[i]};
  decode_block(codes, true, 3.0f, values.data());
  for (size_t i = 0; i < codes.size(); i++) {
    const int size = codes[i] & 127;
    if (size >= 4 || size == 0) {
      EXPECT_EQ(values[i], static_cast<float>((codes[i] > 127 ? -3 : 3) * meaning(size))) << int{codes[i]};
    }
  }
}

// Makes numbers over 20 octaves, with both signs if `negative`.
std::vector<float> spread(int64_t n, bool negative, uint64_t item) {
  std::vector<float> values = normals(n, item);
  Philox random(5, RandomUse::test, item + 1);
  for (size_t i = 0; i < values.size(); i++) {
    values[i] *= std::exp2(-20 * random.uniform(i));
    if (!negative) values[i] = std::abs(values[i]);
  }
  return values;
}

TEST(BlockCode, NearestTakesTheNearestLevel) {
  for (bool negative : {false, true}) {
    const std::vector<float> values = spread(256, negative, 30);
    std::vector<uint8_t> codes(256);
    const double scale = encode_block(values, negative, {}, codes.data());
    double worst = 0;
    for (size_t i = 0; i < 256; i++) {
      const double x = std::abs(values[i]) / scale, got = meaning(codes[i] & (negative ? 127 : 255));
      double best = std::abs(x);
      for (int c = 4; c < (negative ? 128 : 256); c++) best = std::min(best, std::abs(x - meaning(c)));
      if (negative || x > meaning(4)) {
        EXPECT_LE(std::abs(x - got), best + 1e-5 * x) << values[i];
      } else {
        EXPECT_EQ(got, meaning(4));
      }
      EXPECT_EQ(negative && codes[i] > 127, values[i] < 0);
      worst = std::max(worst, std::abs(x - got));
    }
    EXPECT_GT(worst, 0);
  }
}

TEST(BlockCode, TheLargestIsKeptExactlyAndZerosAreZeros) {
  std::vector<float> values{0.0f, 1e-9f, -0.37f, 0.2f, -0.0f};
  std::vector<uint8_t> codes(values.size());
  std::vector<uint16_t> random(values.size(), 0xFFFF);
  const float scale = encode_block(values, true, random, codes.data());
  std::vector<float> back(values.size());
  decode_block(codes, true, scale, back.data());
  EXPECT_FLOAT_EQ(back[2], -0.37f);
  EXPECT_EQ(back[0], 0.0f);
  EXPECT_EQ(back[4], 0.0f);
  std::vector<float> none(5, 0.0f);
  EXPECT_EQ(encode_block(none, false, random, codes.data()), 0.0f);
  EXPECT_EQ(codes, std::vector<uint8_t>(5, 0));
}

TEST(RandomBits, AreThePhiloxBlocksThatTheHeaderNames) {
  const Philox stream(11, RandomUse::stochastic_rounding, 77, 5);
  std::vector<uint16_t> bits(1300);
  random_bits(stream, 3001, bits);
  for (size_t i = 0; i < bits.size(); i++) {
    const uint64_t e = 3001 + i, piece = e / 64 % 8;
    const uint32_t word = stream.block(64 * (e / 512) + e % 64)[piece / 2];
    ASSERT_EQ(bits[i], static_cast<uint16_t>(piece % 2 ? word >> 16 : word)) << e;
  }
}

// The mean of many roundings of one number is the number.
TEST(Rounding, AtRandomIsUnbiased) {
  constexpr int64_t kTimes = 40'000;
  for (Packing packing : {Packing::bf16, Packing::int8})
    for (bool negative : {true, false}) {
      const std::vector<float> values = spread(256, negative, 40);
      std::vector<double> sums(256), squares(256);
      std::vector<std::byte> numbers(512);
      std::vector<float> back(256), scales(1);
      std::vector<uint16_t> random(256);
      for (int64_t t = 0; t < kTimes; t++) {
        random_bits(Philox(1, RandomUse::stochastic_rounding, 3, static_cast<uint64_t>(t)), 0, random);
        pack(packing, negative, values, 0, random, {numbers.data(), scales.data()});
        unpack(packing, negative, {numbers.data(), scales.data()}, 0, back);
        for (size_t i = 0; i < 256; i++) sums[i] += back[i], squares[i] += static_cast<double>(back[i]) * back[i];
      }
      const double floor = negative ? 0 : scales[0] * meaning(4);  // smaller numbers are raised to it
      for (size_t i = 0; i < 256; i++) {
        const double mean = sums[i] / kTimes, deviation = std::sqrt(std::max(0.0, squares[i] / kTimes - mean * mean));
        if (packing == Packing::int8 && values[i] < floor && !negative) continue;
        EXPECT_NEAR(mean, values[i], 5 * deviation / std::sqrt(kTimes) + 1e-4 * std::abs(values[i]) + 1e-12)
            << values[i] << " " << static_cast<int>(packing);
      }
    }
}

// A parameter with packed state, stepped in slices.
struct PackedTrial {
  Trial trial;
  Packing packing;
  std::vector<std::vector<std::byte>> numbers;
  std::vector<std::vector<float>> scales;

  PackedTrial(OptimizerKind kind, Packing p, int64_t n) : trial(settings(kind), {n}, normals(n, 2)), packing(p) {
    trial.facts.number = 9;
    for (size_t k = 0; k < trial.slots.size(); k++) {
      numbers.emplace_back(static_cast<size_t>(n * packed_bytes(p)));
      scales.emplace_back(static_cast<size_t>(scale_count(p, 0, n)));
    }
  }
  void step(const std::vector<float>& gradient, const Update& update, const std::vector<int64_t>& ends) {
    each_slice(gradient, ends,
               [&](const PackedSlice& slice) { apply_packed(*trial.optimizer, packing, slice, {&update, 1}); });
  }
  // An empty gradient counts as zero.
  void steps(const std::vector<float>& gradient, std::span<const Update> updates, const std::vector<int64_t>& ends) {
    each_slice(gradient, ends, [&](const PackedSlice& slice) { apply_packed(*trial.optimizer, packing, slice, updates); });
  }
  template <class Work>
  void each_slice(const std::vector<float>& gradient, const std::vector<int64_t>& ends, const Work& work) {
    int64_t begin = 0;
    for (int64_t end : ends) {
      const auto first = static_cast<size_t>(begin), count = static_cast<size_t>(end - begin);
      PackedSlice slice{&trial.facts, begin, std::span(trial.value).subspan(first, count), {}, {}};
      if (!gradient.empty()) slice.gradient = std::span(gradient).subspan(first, count);
      for (size_t k = 0; k < numbers.size(); k++)
        slice.slots.push_back({numbers[k].data() + begin * packed_bytes(packing),
                               scales[k].empty() ? nullptr : scales[k].data() + begin / kScaleBlock});
      work(slice);
      begin = end;
    }
  }
};

const std::vector<OptimizerKind> kPackable = [] {
  std::vector<OptimizerKind> kinds = kAll;
  std::erase_if(kinds, [](OptimizerKind kind) { return !row_of(kind).elementwise; });
  return kinds;
}();

TEST(PackedState, Float32IsTheOptimizerItself) {
  for (OptimizerKind kind : kPackable) {
    PackedTrial packed(kind, Packing::fp32, 40'000);
    Trial plain(settings(kind), {40'000}, normals(40'000, 2));
    for (int t = 1; t <= 3; t++) {
      const auto gradient = normals(40'000, 200 + static_cast<uint64_t>(t));
      packed.step(gradient, {.lr = 0.01, .step = t, .seed = 4}, {40'000});
      plain.step(gradient, {.lr = 0.01, .step = t});
    }
    EXPECT_EQ(packed.trial.value, plain.value);
  }
}

TEST(PackedState, ResultsDoNotDependOnCutsAtBlocksNorOnThreads) {
  const int before = at::get_num_threads();
  for (OptimizerKind kind : kPackable)
    for (Packing packing : {Packing::bf16, Packing::int8}) {
      constexpr int64_t n = 50'123;
      PackedTrial whole(kind, packing, n), cut(kind, packing, n);
      for (int t = 1; t <= 3; t++) {
        const auto gradient = normals(n, 200 + static_cast<uint64_t>(t));
        const Update update{.lr = 0.01, .gradient_scale = 0.9, .step = t, .seed = 4};
        at::set_num_threads(1);
        whole.step(gradient, update, {n});
        at::set_num_threads(2);
        cut.step(gradient, update, {256, 512 * t, 16384, 16384 + 256 * 11, 40'960, n});
      }
      EXPECT_EQ(whole.trial.value, cut.trial.value);
      EXPECT_EQ(whole.numbers, cut.numbers);
      EXPECT_EQ(whole.scales, cut.scales);
    }
  at::set_num_threads(before);
}

TEST(PackedState, UpdatesMadeTogetherAreThoseMadeOneByOne) {
  const int before = at::get_num_threads();
  constexpr int64_t n = 50'123;
  const std::vector<float> none, zero(n, 0.0f);
  std::vector<Update> updates;
  for (int t = 2; t <= 12; t++) updates.push_back({.lr = 0.01 / t, .gradient_scale = 1.0 / t, .step = t, .seed = 4});
  for (OptimizerKind kind : kPackable)
    for (Packing packing : {Packing::fp32, Packing::bf16, Packing::int8})
      for (bool with_gradient : {true, false}) {
        PackedTrial together(kind, packing, n), one_by_one(kind, packing, n);
        for (PackedTrial* trial : {&together, &one_by_one})
          trial->step(normals(n, 200), {.lr = 0.01, .step = 1, .seed = 4}, {n});
        const std::vector<float> gradient = with_gradient ? normals(n, 201) : none;
        at::set_num_threads(2);
        together.steps(gradient, updates, {256, 16384, 40'960, n});
        at::set_num_threads(1);
        for (const Update& update : updates)
          one_by_one.step(&update == updates.data() && with_gradient ? gradient : zero, update, {n});
        EXPECT_EQ(together.trial.value, one_by_one.trial.value);
        EXPECT_EQ(together.numbers, one_by_one.numbers);
        EXPECT_EQ(together.scales, one_by_one.scales);
      }
  at::set_num_threads(before);
}

TEST(PackedState, TheSeedAndTheUpdateDecideTheRounding) {
  constexpr int64_t n = 1000;
  PackedTrial a(OptimizerKind::adamw, Packing::bf16, n), b(OptimizerKind::adamw, Packing::bf16, n);
  a.step(normals(n, 3), {.lr = 0.01, .step = 1, .seed = 1}, {n});
  b.step(normals(n, 3), {.lr = 0.01, .step = 1, .seed = 2}, {n});
  EXPECT_NE(a.numbers, b.numbers);
  EXPECT_EQ(a.trial.value, b.trial.value);  // the first update computes in float32: only the packed state differs
}

}  // namespace
}  // namespace megalith
