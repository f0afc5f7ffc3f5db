#include "model/packed_rows.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model/support.h"

namespace megalith {
namespace {
using namespace testing_support;

// Rows whose numbers differ by orders of magnitude between groups, as in a residual stream with outliers.
at::Tensor uneven_rows(int64_t rows, int64_t width) {
  at::Tensor x_NC = normal({rows, width}, 1, at::kFloat);
  auto* x = x_NC.mutable_data_ptr<float>();
  for (int64_t i = 0; i < x_NC.numel(); i++) x[i] *= std::ldexp(1.0f, static_cast<int>(i / 100 % 23) - 11);
  return x_NC;
}

TEST(PackedRows, ErrorsStayWithinWhatTheHeaderSays) {
  for (int64_t width : {1, 7, 128, 129, 500}) {
    const at::Tensor x_NC = uneven_rows(37, width);
    const at::Tensor half = unpack_rows(pack_rows(x_NC, Packing::bf16)), byte = unpack_rows(pack_rows(x_NC, Packing::int8));
    ASSERT_EQ(half.sizes(), x_NC.sizes());
    ASSERT_EQ(byte.sizes(), x_NC.sizes());
    const float *x = x_NC.const_data_ptr<float>(), *h = half.const_data_ptr<float>(), *b = byte.const_data_ptr<float>();
    double worst_half = 0, worst_byte = 0;
    for (int64_t row = 0; row < 37; row++)
      for (int64_t first = 0; first < width; first += kScaleWidth) {
        const int64_t begin = row * width + first, end = row * width + std::min(width, first + kScaleWidth);
        double most = 0;
        for (int64_t i = begin; i < end; i++) most = std::max(most, std::abs(double{x[i]}));
        for (int64_t i = begin; i < end; i++) {
          worst_half = std::max(worst_half, std::abs(double{h[i]} - x[i]) / std::abs(double{x[i]}));
          worst_byte = std::max(worst_byte, std::abs(double{b[i]} - x[i]) / most);
        }
      }
    EXPECT_LE(worst_half, std::ldexp(1.0, -8));
    EXPECT_LE(worst_byte, 1.0001 / 254);
    if (width >= 128) {
      EXPECT_GT(worst_byte, 0.9 / 254);
    }
  }
}

TEST(PackedRows, ARowIsPackedAlikeAloneAndInCompany) {
  const int before = at::get_num_threads();
  at::set_num_threads(2);
  const at::Tensor x_NC = uneven_rows(100, 200);
  const PackedRows all = pack_rows(x_NC, Packing::int8);
  for (int64_t row : {0, 41, 99}) {
    const PackedRows one = pack_rows(x_NC.narrow(0, row, 1), Packing::int8);
    EXPECT_TRUE(one.numbers.equal(all.numbers.narrow(0, row, 1)));
    EXPECT_TRUE(one.scales_NS.equal(all.scales_NS.narrow(0, row, 1)));
  }
  at::set_num_threads(before);
}

TEST(PackedRows, ZerosStayZerosAndBytesAreAsCounted) {
  EXPECT_TRUE(unpack_rows(pack_rows(tensor::zeros({3, 150}), Packing::int8)).equal(tensor::zeros({3, 150})));
  for (Packing packing : {Packing::bf16, Packing::int8})
    for (int64_t width : {64, 128, 300}) {
      const PackedRows packed = pack_rows(normal({5, width}, 2, at::kFloat), packing);
      const int64_t scales = packed.scales_NS.defined() ? static_cast<int64_t>(packed.scales_NS.nbytes()) : 0;
      EXPECT_EQ(static_cast<int64_t>(packed.numbers.nbytes()) + scales, 5 * packed_row_bytes(packing, width));
    }
}

TEST(PackedRows, OnlyMatricesOfFloat32ArePacked) {
  EXPECT_TRUE(can_pack(tensor::zeros({2, 3})));
  EXPECT_FALSE(can_pack(tensor::zeros({2, 3, 4})));
  EXPECT_FALSE(can_pack(tensor::zeros({2, 3}, at::kBFloat16)));
  EXPECT_FALSE(can_pack(tensor::zeros({4, 6}).t()));
}

}  // namespace
}  // namespace megalith
