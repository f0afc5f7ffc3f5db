#include "model/kernels/product.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstring>

#include "base/chores.h"
#include "model/kernels/operand.h"
#include "model/kernels/simd.h"
#include "model/tensor_ops.h"

namespace megalith::kernels {
namespace {

constexpr int64_t kRowTile = 8, kColumnTile = 48;  // multiples of the tiles of all the library's kernels
constexpr int64_t kWorthThreads = int64_t{1} << 20;  // multiply-adds

MEGALITH_VECTORISED
void row_sum(const float* a, const float* b, float* out, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) out[i] = a[i] + b[i];
}

// The values that c starts with. The product is added to them.
struct Start {
  bool itself = false;                    // c keeps its values
  const float* row = nullptr;             // copied to every row of c
  Matrix<const float> other{nullptr, 0};  // copied to c; if `row` is set too, c becomes the sum of both
};

void run(const at::Tensor& a_MK, const at::Tensor& b_KN, const at::Tensor& c_MN, const Start& start) {
  const Operand a = operand(a_MK), b = operand(b_KN);
  const Matrix<float> c{c_MN.mutable_data_ptr<float>(), c_MN.stride(0)};
  const int64_t m = c_MN.size(0), n = c_MN.size(1), k = a_MK.size(1);
  const Grid grid = cut(m, n, k, at::in_parallel_region() ? 1 : at::get_num_threads());
  auto block = [&](int64_t index) {
    const int64_t row = index / grid.columns * grid.row_step, column = index % grid.columns * grid.column_step;
    const int64_t rows = std::min(grid.row_step, m - row), columns = std::min(grid.column_step, n - column);
    if (rows <= 0 || columns <= 0) return;
    const Matrix<float> to{c.data + row * c.stride + column, c.stride};
    for (int64_t r = 0; r < rows && (start.row || start.other.data); r++) {
      float* out = to.data + r * to.stride;
      const float* other = start.other.data ? start.other.data + (row + r) * start.other.stride + column : nullptr;
      if (start.row && other)
        row_sum(start.row + column, other, out, columns);
      else
        std::memcpy(out, other ? other : start.row + column, static_cast<size_t>(columns) * sizeof(float));
    }
    multiply(rows, columns, k, {a.from(row, 0), a.turn}, {b.from(0, column), b.turn}, to,
             start.itself || start.row || start.other.data);
  };
  const int64_t blocks = grid.rows * grid.columns;
  auto blocks_from = [&](int64_t begin, int64_t end) {
    Chores::of_process().help();
    for (int64_t i = begin; i < end; i++) block(i);
  };
  if (blocks == 1) return blocks_from(0, 1);
  at::parallel_for(0, blocks, 1, blocks_from);
}

}  // namespace

Grid cut(int64_t m, int64_t n, int64_t k, int64_t threads) {
  Grid best{1, 1, m, n};
  if (threads <= 1 || m * n * k < kWorthThreads) return best;
  // Every block packs its rows of a and its columns of b. So a is packed once for every column of blocks.
  double least = 0;
  for (int64_t rows = 1; rows <= threads; rows++) {
    if (threads % rows != 0) continue;
    const int64_t columns = threads / rows;
    auto step = [](int64_t size, int64_t parts, int64_t tile) {
      const int64_t even = (size + parts - 1) / parts;
      return parts == 1 ? size : (even + tile - 1) / tile * tile;
    };
    const Grid grid{rows, columns, step(m, rows, kRowTile), step(n, columns, kColumnTile)};
    // All threads wait for the largest block. Packing an element costs about as much as eight multiply-adds.
    const auto work = static_cast<double>(grid.row_step * grid.column_step);
    const double cost = work * static_cast<double>(k) + 8.0 * static_cast<double>((grid.row_step + grid.column_step) * k);
    if (least == 0 || cost < least) {
      least = cost;
      best = grid;
    }
  }
  return best;
}

at::Tensor product(const at::Tensor& a_MK, const at::Tensor& b_KN, const at::Tensor& row_N, const at::Tensor& onto_MN) {
  if (takes(a_MK) && takes(b_KN) && (!row_N.defined() || row_N.is_contiguous()) &&
      (!onto_MN.defined() || (plain(onto_MN) && by_rows(onto_MN)))) {
    at::Tensor c_MN = tensor::empty({a_MK.size(0), b_KN.size(1)}, a_MK.options());
    Start start;
    if (row_N.defined()) start.row = row_N.const_data_ptr<float>();
    if (onto_MN.defined()) start.other = {onto_MN.const_data_ptr<float>(), onto_MN.stride(0)};
    run(a_MK, b_KN, c_MN, start);
    return c_MN;
  }
  at::Tensor c_MN = row_N.defined() ? row_N.addmm(a_MK, b_KN) : a_MK.mm(b_KN);
  return onto_MN.defined() ? c_MN.add_(onto_MN) : c_MN;
}

void product_into(const at::Tensor& a_MK, const at::Tensor& b_KN, at::Tensor& c_MN, const at::Tensor& row_N) {
  if (takes(a_MK) && takes(b_KN) && plain(c_MN) && by_rows(c_MN) && (!row_N.defined() || row_N.is_contiguous())) {
    Start start;
    if (row_N.defined()) start.row = row_N.const_data_ptr<float>();
    run(a_MK, b_KN, c_MN, start);
  } else if (row_N.defined()) {
    tensor::addmm_out(c_MN, row_N, a_MK, b_KN);
  } else {
    tensor::mm_out(c_MN, a_MK, b_KN);
  }
}

void product_added(const at::Tensor& a_MK, const at::Tensor& b_KN, const at::Tensor& c_MN) {
  if (takes(a_MK) && takes(b_KN) && plain(c_MN) && by_rows(c_MN))
    run(a_MK, b_KN, c_MN, {.itself = true});
  else
    c_MN.addmm_(a_MK, b_KN);
}

}  // namespace megalith::kernels
