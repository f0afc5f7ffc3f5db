// Slices and threads must not change a single bit of the result.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "optim/trial.h"

namespace megalith {

TEST(Optimizers, ResultsDoNotDependOnHowAParameterIsCut) {
  const std::vector<std::vector<int64_t>> shapes{{150'001}, {301, 499}};
  for (OptimizerKind kind : kAll) {
    for (const auto& shape : shapes) {
      const int64_t n = shape.size() == 1 ? shape[0] : shape[0] * shape[1];
      const auto initial = normals(n, 2);
      Trial whole(settings(kind), shape, initial), cut(settings(kind), shape, initial);
      Philox random(8, RandomUse::test, 3);
      for (int t = 1; t <= 3; t++) {
        std::vector<int64_t> cuts;
        for (uint64_t k = 0; k < 40; k++)
          cuts.push_back(static_cast<int64_t>(
              random.below(100 * static_cast<uint64_t>(t) + k, static_cast<uint64_t>(n))));
        cuts.insert(cuts.end(), {0, 1, 2, n});  // also an empty slice and slices of one element
        std::ranges::sort(cuts);
        const auto gradient = normals(n, 200 + static_cast<uint64_t>(t));
        const Update update{.lr = 0.01, .gradient_scale = 0.9, .step = t};
        whole.step(gradient, update);
        cut.step(gradient, update, cuts);
      }
      EXPECT_EQ(whole.value, cut.value) << static_cast<int>(kind);
      EXPECT_EQ(whole.slots, cut.slots) << static_cast<int>(kind);
    }
  }
}

TEST(Optimizers, ResultsDoNotDependOnTheNumberOfThreads) {
  const int before = at::get_num_threads();
  for (OptimizerKind kind : kAll) {
    for (std::vector<int64_t> shape : {std::vector<int64_t>{200'003}, {401, 503}}) {
      const int64_t n = shape.size() == 1 ? shape[0] : shape[0] * shape[1];
      std::vector<std::vector<float>> results;
      for (int threads : {1, 2, 3}) {
        at::set_num_threads(threads);
        Trial trial(settings(kind), shape, normals(n, 2));
        for (int t = 1; t <= 3; t++)
          trial.step(normals(n, 300 + static_cast<uint64_t>(t)), {.lr = 0.01, .step = t});
        results.push_back(trial.value);
      }
      EXPECT_EQ(results[0], results[1]) << static_cast<int>(kind);
      EXPECT_EQ(results[0], results[2]) << static_cast<int>(kind);
    }
  }
  at::set_num_threads(before);
}

}  // namespace megalith
