// Compares products of sorted rows, and copies and sums of rows, with float64 and with their ATen forms.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "model/kernels/expert_rows.h"
#include "model/kernels/grouped_product.h"
#include "model/kernels/row_copies.h"
#include "model/support.h"

namespace megalith::kernels {
namespace {
using namespace testing_support;

const std::vector<std::vector<int64_t>> kBegins{{0, 5, 5, 70, 71, 128}, {0, 0, 0, 0, 0, 64}, {0, 64, 64, 64, 64, 64},
                                                {0, 13, 26, 39, 52, 65}, {0, 0, 0, 0, 0, 0}};

TEST(GroupedProduct, IsEachGroupsOwn) {
  for (int threads : {1, 2, 3})
    for (const auto& begin : kBegins) {
      at::set_num_threads(threads);
      const int64_t rows = begin.back(), K = 96, N = 200;
      at::Tensor a = normal({rows, K}, 1, at::kFloat);
      std::vector<at::Tensor> b, turned;
      for (uint64_t g = 0; g + 1 < begin.size(); g++) {
        b.push_back(normal({K, N}, 10 + g, at::kFloat));
        turned.push_back(b.back().t().contiguous().t());
      }
      for (const auto& matrices : {b, turned}) {
        const at::Tensor c = grouped_product(a, begin, matrices);
        ASSERT_EQ(c.size(0), rows);
        for (size_t g = 0; g + 1 < begin.size(); g++) {
          const int64_t own = begin[g + 1] - begin[g];
          if (own == 0) continue;
          const at::Tensor wanted = a.narrow(0, begin[g], own).to(at::kDouble).mm(b[g].to(at::kDouble));
          EXPECT_LT(distance(c.narrow(0, begin[g], own), wanted), 1e-5) << g << " with " << threads << " threads";
        }
      }
    }
}

TEST(GroupedProduct, AddsToEachGroupsGradient) {
  for (int threads : {1, 2, 3})
    for (const auto& begin : kBegins) {
      at::set_num_threads(threads);
      const int64_t rows = begin.back(), M = 130, N = 96;
      at::Tensor a = normal({rows, M}, 1, at::kFloat), b = normal({rows, N}, 2, at::kFloat);
      std::vector<at::Tensor> c, before;
      for (uint64_t g = 0; g + 1 < begin.size(); g++) {
        c.push_back(normal({M, N}, 20 + g, at::kFloat));
        before.push_back(c.back().to(at::kDouble));
      }
      grouped_product_added(a, b, begin, c);
      for (size_t g = 0; g + 1 < begin.size(); g++) {
        const int64_t own = begin[g + 1] - begin[g];
        const at::Tensor wanted = before[g].add(a.narrow(0, begin[g], own).t().to(at::kDouble).mm(b.narrow(0, begin[g], own).to(at::kDouble)));
        EXPECT_LT(distance(c[g], wanted), 1e-5) << g << " with " << threads << " threads";
      }
    }
}

TEST(GroupedProduct, CutsCoverEverythingOnceAndEvenly) {
  for (int64_t threads : {1, 2, 3, 7})
    for (const auto& begin : kBegins)
      for (int64_t width : {96, 200, 1024}) {
        std::vector<std::vector<int>> times(begin.size() - 1, std::vector<int>(static_cast<size_t>(width), 0));
        int64_t most = 0;
        for (const auto& part : cut_groups(begin, width, 48, threads)) {
          int64_t cost = 0;
          for (const GroupCut& cut : part) {
            const auto g = static_cast<size_t>(cut.group);
            cost += (cut.last - cut.first) * (begin[g + 1] - begin[g]);
            for (int64_t c = cut.first; c < cut.last; c++) times[g][static_cast<size_t>(c)]++;
          }
          most = std::max(most, cost);
        }
        int64_t largest = 0;
        for (size_t g = 0; g + 1 < begin.size(); g++) {
          largest = std::max(largest, begin[g + 1] - begin[g]);
          for (int n : times[g]) ASSERT_EQ(n, begin[g + 1] > begin[g] ? 1 : 0);
        }
        EXPECT_LE(most, begin.back() * width / threads + 48 * largest + width);
      }
}

TEST(ExpertRows, GoThereAndComeBack) {
  at::set_num_threads(2);
  for (at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    const at::Tensor x = normal({5, 7}, 1).to(type), onto = normal({5, 7}, 2).to(type);
    const std::vector<int64_t> token{3, 0, 3, 4, 1}, begin{0, 1, 2, 2, 4, 5}, rows{1, 4, 0, 2, 3};
    const at::Tensor gathered = gather_rows(x, token);
    for (size_t r = 0; r < token.size(); r++)
      EXPECT_TRUE(gathered.select(0, static_cast<int64_t>(r)).equal(x.select(0, token[r])));
    const at::Tensor sums = sum_rows(gathered, begin, rows), more = sum_rows(gathered, begin, rows, onto);
    const double counts[] = {1, 1, 0, 2, 1};
    for (int64_t t = 0; t < 5; t++) {
      EXPECT_LT(sums.select(0, t).to(at::kDouble).sub(x.select(0, t).to(at::kDouble).mul(counts[t])).abs().max().item<double>(),
                0.02);
      EXPECT_LT(more.select(0, t).to(at::kDouble).sub(sums.select(0, t).to(at::kDouble)).sub(onto.select(0, t).to(at::kDouble))
                    .abs()
                    .max()
                    .item<double>(),
                0.05);
    }
  }
}

TEST(ExpertRows, WeightedSwigluAgreesWithItsAtenForm) {
  at::set_num_threads(2);
  const at::Tensor both = normal({33, 2 * 77}, 1), weight = normal({33}, 2), g = normal({33, 77}, 3);
  auto single = [](const at::Tensor& x) { return x.to(at::kFloat).contiguous(); };
  EXPECT_LT(distance(weighted_swiglu(single(both), single(weight)), weighted_swiglu_aten(both, weight)), 1e-6);
  at::Tensor a = single(both), ga = single(g), b = both.clone(), gb = g.clone();
  const at::Tensor wa = weighted_swiglu_backward(a, ga, single(weight)), wb = weighted_swiglu_backward_aten(b, gb, weight);
  EXPECT_LT(distance(a, b), 1e-6);
  EXPECT_LT(distance(ga, gb), 1e-6);
  EXPECT_LT(distance(wa, wb), 1e-5);
}

}  // namespace
}  // namespace megalith::kernels
