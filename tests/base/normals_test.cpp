#include "base/normals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

namespace megalith {
namespace {

std::vector<float> normals(const Philox& random, size_t n, uint64_t begin = 0, VectorLevel level = best_vector_level()) {
  std::vector<float> values(n);
  fill_normals(random, begin, values, level);
  return values;
}

TEST(Normals, AreTheSameBitsAtEveryLevel) {
  const Philox random(7, RandomUse::test, 1);
  constexpr size_t kCount = 1 << 20;
  const auto plain = normals(random, kCount, 3, VectorLevel::plain);
  for (VectorLevel level : {VectorLevel::v3, VectorLevel::v4}) {
    if (level > best_vector_level()) continue;
    const auto same = [](float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); };
    EXPECT_TRUE(std::ranges::equal(normals(random, kCount, 3, level), plain, same)) << static_cast<int>(level);
  }
}

TEST(Normals, AreBoxMullersInFloat64) {
  const Philox random(7, RandomUse::test, 2);
  const auto values = normals(random, 1 << 20);
  double worst = 0;
  for (size_t i = 0; i < values.size(); i += 2) {
    const auto words = random.block(i / 4);
    const size_t w = i % 4;
    const float u = (static_cast<float>(words[w] >> 8) + 0.5f) / 16777216.0f;
    const double radius = std::sqrt(-2 * std::log(static_cast<double>(u)));
    const double angle = 2 * std::acos(-1.0) * Philox::to_uniform(words[w + 1]);
    for (const double error : {values[i] - radius * std::cos(angle), values[i + 1] - radius * std::sin(angle)})
      worst = std::max(worst, radius > 0 ? std::abs(error) / radius : std::abs(error));
  }
  EXPECT_LT(worst, 3e-7);  // five half units in the last place
}

TEST(Normals, AreDistributedAsNormals) {
  const int n = 400'000;
  const auto values = normals(Philox(7, RandomUse::test, 3), n);
  double sum = 0, squares = 0, fourths = 0, neighbours = 0;
  for (size_t i = 0; i < values.size(); i++) {
    const double x = values[i];
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
    neighbours += x * values[i ^ 1];
  }
  EXPECT_NEAR(sum / n, 0, 0.007);
  EXPECT_NEAR(squares / n, 1, 0.01);
  EXPECT_NEAR(fourths / n, 3, 0.07);
  EXPECT_NEAR(neighbours / n, 0, 0.007);
  // Compare with the distribution function: Kolmogorov-Smirnov distance, p = 0.001.
  std::vector<float> sorted = values;
  std::ranges::sort(sorted);
  double distance = 0;
  for (int i = 0; i < n; i++) {
    const double below = 0.5 * std::erfc(-sorted[static_cast<size_t>(i)] / std::sqrt(2.0));
    distance = std::max({distance, std::abs(below - static_cast<double>(i) / n), std::abs(below - (i + 1.0) / n)});
  }
  EXPECT_LT(distance, 1.95 / std::sqrt(n));
}

TEST(Normals, DoNotDependOnTheCut) {
  const Philox random(3, RandomUse::test, 0);
  const auto whole = normals(random, 2000);
  for (size_t begin : {0u, 1u, 255u, 256u, 700u})
    for (size_t count : {1u, 2u, 255u, 257u, 1000u}) {
      const auto part = normals(random, count, begin);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(begin)));
    }
}

}  // namespace
}  // namespace megalith
