#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/normals.h"
#include "optim/optimizer.h"

namespace megalith {
namespace {

std::vector<float> normals(int64_t n) {
  Philox random(5, RandomUse::test, 77);
  std::vector<float> values(static_cast<size_t>(n));
  fill_normals(random, 0, values);
  return values;
}

}  // namespace

TEST(SumOfSquares, IsAsExactAsALongDoubleSum) {
  for (int64_t n : {0, 1, 15, 16, 17, 65535, 65536, 65537, 300'001}) {
    const auto values = normals(n);
    long double exact = 0;
    for (float x : values) exact += static_cast<long double>(x) * x;
    EXPECT_NEAR(sum_of_squares(values), static_cast<double>(exact), 1e-13 * static_cast<double>(exact)) << n;
  }
}

TEST(SumOfSquares, DoesNotDependOnTheNumberOfThreads) {
  const auto values = normals(500'003);
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const double one = sum_of_squares(values);
  for (int threads : {2, 3, 5}) {
    at::set_num_threads(threads);
    EXPECT_EQ(sum_of_squares(values), one) << threads;
  }
  at::set_num_threads(before);
}

TEST(SumOfSquares, AdjacentChunksAddUpInOrder) {
  const auto values = normals(3 * 65536 + 5);
  double sum = 0;
  for (size_t begin = 0; begin < values.size(); begin += 65536)
    sum += sum_of_squares(std::span(values).subspan(begin, std::min<size_t>(65536, values.size() - begin)));
  EXPECT_EQ(sum_of_squares(values), sum);
}

TEST(SumOfSquares, LargeFloatsDoNotOverflowAndBadOnesShow) {
  std::vector<float> values(100, 3e38f);
  EXPECT_NEAR(sum_of_squares(values) / (100 * 9e76), 1, 1e-6);
  values[50] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isinf(sum_of_squares(values)));
  values[99] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(sum_of_squares(values)));
}

}  // namespace megalith
