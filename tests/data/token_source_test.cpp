#include "data/token_source.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"

namespace megalith {

TEST(ConcatenatedSource, ReadsAcrossItsSourcesAtAnyCut) {
  TokenSources sources;
  int64_t next = 0;
  for (int64_t size : {3, 0, 1, 7, 2, 0}) {
    std::vector<int64_t> ids(static_cast<size_t>(size));
    std::iota(ids.begin(), ids.end(), next);
    next += size;
    sources.push_back(std::make_unique<MemorySource>(ids));
  }
  ConcatenatedSource stream(std::move(sources));
  ASSERT_EQ(stream.tokens(), 13);
  for (int64_t begin = 0; begin <= 13; begin++) {
    for (int64_t count = 0; begin + count <= 13; count++) {
      std::vector<int64_t> out(static_cast<size_t>(count), -1), expected(out.size());
      std::iota(expected.begin(), expected.end(), begin);
      stream.copy(begin, out);
      EXPECT_EQ(out, expected) << begin << " + " << count;
    }
  }
  std::vector<int64_t> two(2);
  EXPECT_THROW(stream.copy(12, two), Bug);
}

TEST(ConcatenatedSource, NamesItsFirstSourceAndCountsTheRest) {
  TokenSources sources;
  EXPECT_EQ(ConcatenatedSource({}).name(), "no data");
  for (const char* name : {"a.txt", "b.txt", "c.txt"})
    sources.push_back(std::make_unique<MemorySource>(std::vector<int64_t>{1}, name));
  EXPECT_EQ(ConcatenatedSource(std::move(sources)).name(), "a.txt and 2 more");
}

}  // namespace megalith
