#include "model/kernels/grouped_product.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "base/chores.h"
#include "model/kernels/operand.h"
#include "model/tensor_ops.h"

namespace megalith::kernels {
namespace {

constexpr int64_t kTile = 48;                        // columns; a multiple of the tiles of all the library's kernels
constexpr int64_t kWorthThreads = int64_t{1} << 20;  // multiply-adds

int64_t threads_for(int64_t rows, int64_t width, int64_t depth) {
  return at::in_parallel_region() || rows * width * depth < kWorthThreads ? 1 : at::get_num_threads();
}

template <class Work>
void run(const std::vector<std::vector<GroupCut>>& parts, const Work& work) {
  auto do_parts = [&](int64_t first, int64_t last) {
    Chores::of_process().help();
    for (int64_t i = first; i < last; i++)
      for (const GroupCut& cut : parts[static_cast<size_t>(i)]) work(cut);
  };
  if (parts.size() == 1) return do_parts(0, 1);
  at::parallel_for(0, std::ssize(parts), 1, do_parts);
}

bool take(const std::vector<at::Tensor>& all) { return std::all_of(all.begin(), all.end(), takes); }

}  // namespace

std::vector<std::vector<GroupCut>> cut_groups(std::span<const int64_t> begin, int64_t width, int64_t tile, int64_t threads) {
  const int64_t rows = begin.back() - begin.front(), groups = std::ssize(begin) - 1;
  std::vector<std::vector<GroupCut>> parts(static_cast<size_t>(threads));
  int64_t group = 0, column = 0;
  for (int64_t part = 0; part < threads; part++) {
    // The end of this part, in rows times columns from the beginning of the line.
    const int64_t end = part + 1 == threads ? rows * width : rows * width / threads * (part + 1);
    while (group < groups) {
      const auto g = static_cast<size_t>(group);
      const int64_t own = begin[g + 1] - begin[g], before = (begin[g] - begin.front()) * width;
      int64_t last = own == 0 ? width : std::clamp<int64_t>((end - before + own - 1) / own, 0, width);
      if (last < width) last = std::min(width, (last + tile / 2) / tile * tile);
      if (last > column && own > 0) parts[static_cast<size_t>(part)].push_back({group, column, last});
      column = std::max(column, last);
      if (column < width) break;
      group++;
      column = 0;
    }
  }
  return parts;
}

at::Tensor grouped_product(const at::Tensor& a_RK, std::span<const int64_t> begin, const std::vector<at::Tensor>& b_KN) {
  const int64_t rows = a_RK.size(0), depth = a_RK.size(1), width = b_KN[0].size(1);
  at::Tensor c_RN = tensor::empty({rows, width}, a_RK.options());
  if (rows == 0) return c_RN;
  if (!takes(a_RK) || !take(b_KN)) {
    for (size_t g = 0; g + 1 < begin.size(); g++)
      if (begin[g + 1] > begin[g]) {
        at::Tensor to = c_RN.narrow(0, begin[g], begin[g + 1] - begin[g]);
        tensor::mm_out(to, a_RK.narrow(0, begin[g], begin[g + 1] - begin[g]), b_KN[g]);
      }
    return c_RN;
  }
  const Operand a = operand(a_RK);
  const Matrix<float> c{c_RN.mutable_data_ptr<float>(), width};
  run(cut_groups(begin, width, kTile, threads_for(rows, width, depth)), [&](const GroupCut& cut) {
    const auto g = static_cast<size_t>(cut.group);
    const Operand b = operand(b_KN[g]);
    multiply(begin[g + 1] - begin[g], cut.last - cut.first, depth, {a.from(begin[g], 0), a.turn}, {b.from(0, cut.first), b.turn},
             {c.data + begin[g] * width + cut.first, width}, false);
  });
  return c_RN;
}

void grouped_product_added(const at::Tensor& a_RM, const at::Tensor& b_RN, std::span<const int64_t> begin,
                           const std::vector<at::Tensor>& c_MN) {
  const int64_t rows = a_RM.size(0), height = a_RM.size(1), width = b_RN.size(1);
  if (rows == 0) return;
  if (!takes(a_RM) || !takes(b_RN) || !take(c_MN)) {
    for (size_t g = 0; g + 1 < begin.size(); g++) {
      const int64_t own = begin[g + 1] - begin[g];
      if (own > 0) c_MN[g].add_(a_RM.narrow(0, begin[g], own).t().mm(b_RN.narrow(0, begin[g], own)));
    }
    return;
  }
  const Operand a = operand(a_RM), b = operand(b_RN);
  run(cut_groups(begin, height, kTile, threads_for(rows, width, height)), [&](const GroupCut& cut) {
    const auto g = static_cast<size_t>(cut.group);
    // The rows of c are columns of a, which is transposed.
    multiply(cut.last - cut.first, width, begin[g + 1] - begin[g], {a.from(begin[g], cut.first), Transpose::yes},
             {b.from(begin[g], 0), b.turn},
             {c_MN[g].mutable_data_ptr<float>() + cut.first * c_MN[g].stride(0), c_MN[g].stride(0)}, true);
  });
}

}  // namespace megalith::kernels
