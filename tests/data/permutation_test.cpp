#include "data/permutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/philox.h"

namespace megalith {

TEST(Permutation, EverySmallSizeIsABijectionWithItsInverse) {
  for (uint64_t n = 1; n <= 300; n++) {
    for (uint64_t key : {0ull, 1ull, 0x123456789abcdefull}) {
      Permutation shuffle(n, key);
      std::vector<bool> seen(n);
      for (uint64_t i = 0; i < n; i++) {
        const uint64_t image = shuffle(i);
        ASSERT_LT(image, n);
        ASSERT_FALSE(seen[image]) << "n " << n << ": " << image << " twice";
        seen[image] = true;
        ASSERT_EQ(shuffle.inverse(image), i);
      }
    }
  }
}

TEST(Permutation, SizesAroundPowersOfTwoAreBijections) {
  for (uint64_t n : {4095ull, 4096ull, 4097ull, 65535ull, 65537ull, 100'003ull}) {
    Permutation shuffle(n, 7);
    std::vector<bool> seen(n);
    for (uint64_t i = 0; i < n; i++) seen[shuffle(i)] = true;
    EXPECT_EQ(std::count(seen.begin(), seen.end(), false), 0) << n;
  }
}

TEST(Permutation, HugeSizesAreInvertedAtAnyIndex) {
  Philox random(1, RandomUse::test, 0);
  for (uint64_t n : {uint64_t{1'000'000'000'000}, Permutation::kLargest - 1, Permutation::kLargest}) {
    Permutation shuffle(n, 99);
    for (uint64_t k = 0; k < 2000; k++) {
      const uint64_t index = k == 0 ? n - 1 : random.below(k, n), image = shuffle(index);
      ASSERT_LT(image, n);
      ASSERT_EQ(shuffle.inverse(image), index);
    }
  }
}

// Over many keys, each index must move to every position equally often.
TEST(Permutation, ImagesAreUniformOverKeys) {
  for (uint64_t n : {2ull, 3ull, 5ull, 10ull, 17ull}) {
    const int keys = 20'000;
    for (uint64_t index : {uint64_t{0}, n - 1}) {
      std::vector<int> counts(n);
      for (int key = 0; key < keys; key++) counts[Permutation(n, static_cast<uint64_t>(key))(index)]++;
      double chi = 0;
      const double expected = keys / static_cast<double>(n);
      for (int count : counts) chi += (count - expected) * (count - expected) / expected;
      // The Wilson-Hilferty bound of the chi-square distribution at p = 1e-4.
      const double f = static_cast<double>(n - 1);
      EXPECT_LT(chi, f * std::pow(1 - 2 / (9 * f) + 3.719 * std::sqrt(2 / (9 * f)), 3)) << "n " << n;
    }
  }
}

TEST(Permutation, AllOrdersOfThreeAreEquallyLikely) {
  std::map<std::vector<uint64_t>, int> counts;
  const int keys = 60'000;
  for (int key = 0; key < keys; key++) {
    Permutation shuffle(3, static_cast<uint64_t>(key));
    counts[{shuffle(0), shuffle(1), shuffle(2)}]++;
  }
  EXPECT_EQ(counts.size(), 6u);
  double chi = 0;
  for (auto& [order, count] : counts) chi += std::pow(count - keys / 6.0, 2) / (keys / 6.0);
  EXPECT_LT(chi, 25.7);  // 5 degrees of freedom, p = 1e-4
}

// Neighbours must not stay neighbours: checks the correlation of index and image, and of images of consecutive indices.
TEST(Permutation, ImagesDoNotFollowTheirIndex) {
  const uint64_t n = 100'000;
  Permutation shuffle(n, 5);
  double with_index = 0, with_next = 0;
  auto centred = [&](uint64_t x) { return (static_cast<double>(x) / (n - 1) - 0.5) * std::sqrt(12.0); };
  for (uint64_t i = 0; i + 1 < n; i++) {
    with_index += centred(i) * centred(shuffle(i));
    with_next += centred(shuffle(i)) * centred(shuffle(i + 1));
  }
  EXPECT_LT(std::abs(with_index / n), 4 / std::sqrt(n));
  EXPECT_LT(std::abs(with_next / n), 4 / std::sqrt(n));
}

TEST(Permutation, AnIndexOutsideIsABug) {
  EXPECT_THROW(Permutation(5, 1)(5), Bug);
  EXPECT_THROW(Permutation(0, 1), Bug);
}

}  // namespace megalith
