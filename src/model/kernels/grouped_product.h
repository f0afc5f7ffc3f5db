// Products of rows that are sorted into groups, each with a matrix of its own: the experts of a layer. All of it is one
// piece of work, cut evenly over the threads wherever the cuts fall, so that no thread idles however small or uneven the
// groups are.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace megalith::kernels {

// Group g has rows [begin[g], begin[g + 1]); b[g] is [K, N], perhaps a transposed view.
at::Tensor grouped_product(const at::Tensor& a_RK, std::span<const int64_t> begin, const std::vector<at::Tensor>& b_KN);

// c[g] [M, N] += a^T b of group g's rows.
void grouped_product_added(const at::Tensor& a_RM, const at::Tensor& b_RN, std::span<const int64_t> begin,
                           const std::vector<at::Tensor>& c_MN);

// One thread's part: columns [first, last) of what groups from one on have, in a line whose cost is cut evenly.
struct GroupCut {
  int64_t group, first, last;
};
// Groups of `rows` rows, each with `width` columns to compute, as lists of parts of equal cost; columns are cut at
// multiples of `tile`.
std::vector<std::vector<GroupCut>> cut_groups(std::span<const int64_t> begin, int64_t width, int64_t tile, int64_t threads);

}  // namespace megalith::kernels
