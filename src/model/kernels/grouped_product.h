// Products of rows that are sorted into groups, each with its own matrix: the experts of a layer. The work of all groups is
// one line that is cut evenly over the threads. A cut may fall inside a group. So no thread is idle, even if groups are
// small or uneven.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace megalith::kernels {

// Group g has rows [begin[g], begin[g + 1]). b[g] is [K, N] and may be a transposed view.
at::Tensor grouped_product(const at::Tensor& a_RK, std::span<const int64_t> begin, const std::vector<at::Tensor>& b_KN);

// c[g] += a^T b over the rows of group g; c[g] is [M, N].
void grouped_product_added(const at::Tensor& a_RM, const at::Tensor& b_RN, std::span<const int64_t> begin,
                           const std::vector<at::Tensor>& c_MN);

// A part of one thread's work: columns [first, last) of the result of one group.
struct GroupCut {
  int64_t group, first, last;
};
// Cuts the work of all groups into one list of parts per thread, with nearly equal costs. Group g has rows
// [begin[g], begin[g + 1]) and `width` columns to compute. Columns are cut at multiples of `tile`.
std::vector<std::vector<GroupCut>> cut_groups(std::span<const int64_t> begin, int64_t width, int64_t tile, int64_t threads);

}  // namespace megalith::kernels
