#include "model/kernels/dropout.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "model/kernels/simd.h"

namespace megalith::kernels {
namespace {

// Writes the factors of whole Philox blocks [block, block + count), four elements each.
MEGALITH_VECTORISED
void factors_of_blocks(const Philox& random, uint64_t block, int64_t count, uint32_t threshold, float scale, float* out) {
  for (int64_t b = 0; b < count; b++) {
    auto bits = random.block(block + static_cast<uint64_t>(b));
    for (int i = 0; i < 4; i++) out[4 * b + i] = bits[i] < threshold ? 0.0f : scale;
  }
}

}  // namespace

void dropout_factors(const DropoutSite& site, int64_t begin, int64_t n, float* out) {
  Philox random(site.seed, site.use, site.item, static_cast<uint64_t>(site.step));
  auto threshold = static_cast<uint32_t>(std::min(4294967295.0, std::nearbyint(site.probability * 4294967296.0)));
  float scale = static_cast<float>(1.0 / (1.0 - site.probability));
  int64_t at = site.first_element + begin, done = 0;
  auto one_by_one = [&](int64_t until) {
    for (; done < until; done++) out[done] = random.bits(static_cast<uint64_t>(at + done)) < threshold ? 0.0f : scale;
  };
  one_by_one(std::min(n, (4 - at % 4) % 4));
  int64_t blocks = (n - done) / 4;
  factors_of_blocks(random, static_cast<uint64_t>(at + done) / 4, blocks, threshold, scale, out + done);
  done += 4 * blocks;
  one_by_one(n);
}

void dropout_in_place(at::Tensor& x, const DropoutSite& site) {
  if (site.probability <= 0) return;
  MEGALITH_ASSERT(x.is_contiguous(), "dropout counts elements in memory order");
  constexpr int64_t kChunk = 4096;
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, x.scalar_type(), "dropout", [&] {
    scalar_t* values = x.mutable_data_ptr<scalar_t>();
    int64_t n = x.numel();
    at::parallel_for(0, (n + kChunk - 1) / kChunk, 1, [&](int64_t first, int64_t last) {
      float factors[kChunk];
      for (int64_t c = first; c < last; c++) {
        int64_t begin = c * kChunk, count = std::min(kChunk, n - begin);
        dropout_factors(site, begin, count, factors);
        for (int64_t i = 0; i < count; i++)
          values[begin + i] = static_cast<scalar_t>(static_cast<at::opmath_type<scalar_t>>(values[begin + i]) * factors[i]);
      }
    });
  });
}

}  // namespace megalith::kernels
