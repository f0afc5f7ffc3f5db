#include "model/kernels/row_copies.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "model/support.h"

namespace megalith::kernels {
namespace {
using namespace testing_support;

// Random rising rows out of 200: no rows, all rows, and fewer and more than one thread takes.
TEST(RowCopies, GatherAndReplaceAsIndexingDoes) {
  for (int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    for (at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16})
      for (int64_t some : {0, 1, 63, 130, 200}) {
        const at::Tensor x = normal({200, 7}, 1).to(type), y = normal({some, 7}, 2).to(type);
        const at::Tensor rows = std::get<0>(normal({200}, 3).argsort().slice(0, 0, some).sort());
        const std::span<const int64_t> numbers(rows.const_data_ptr<int64_t>(), static_cast<size_t>(some));
        EXPECT_TRUE(gather_rows(x, numbers).equal(x.index_select(0, rows)));
        EXPECT_TRUE(replace_rows(x, numbers, y).equal(x.index_copy(0, rows, y)));
      }
  }
}

TEST(RowCopies, TakeMatricesThatAreViews) {
  const at::Tensor x = normal({7, 9}, 1).t(), y = normal({7, 2}, 2).t();
  const std::vector<int64_t> rows{3, 8};
  const at::Tensor out = replace_rows(x, rows, y);
  EXPECT_TRUE(gather_rows(out, rows).equal(y));
  EXPECT_TRUE(out.slice(0, 0, 3).equal(x.slice(0, 0, 3)));
  EXPECT_TRUE(out.slice(0, 4, 8).equal(x.slice(0, 4, 8)));
}

}  // namespace
}  // namespace megalith::kernels
