#include "model/packed_rows.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "model/kernels/simd.h"
#include "model/tensor_ops.h"

namespace megalith {
namespace {

constexpr int64_t kRows = 16;        // rows that a thread takes at least
constexpr float kSmallest = 1e-30f;  // if all numbers of a scale are at most this, they become zeros

MEGALITH_VECTORISED float largest(int64_t n, const float* __restrict x) {
  uint32_t most = 0;  // the bits of positive floats have the same order as the floats
  for (int64_t i = 0; i < n; i++) most = std::max(most, std::bit_cast<uint32_t>(x[i]) & 0x7FFFFFFFu);
  return std::bit_cast<float>(most);
}

MEGALITH_VECTORISED void encode(int64_t n, const float* __restrict x, float inverse, int8_t* __restrict out) {
  for (int64_t i = 0; i < n; i++) {
    const float scaled = std::min(std::max(x[i] * inverse, -127.0f), 127.0f);
    out[i] = static_cast<int8_t>(static_cast<int32_t>(__builtin_rintf(scaled)));
  }
}

MEGALITH_VECTORISED void decode(int64_t n, const int8_t* __restrict x, float scale, float* __restrict out) {
  for (int64_t i = 0; i < n; i++) out[i] = static_cast<float>(x[i]) * scale;
}

// Calls work(first number, count, index of the scale) for every group of numbers that share a scale.
template <class Work>
void each_scale(int64_t rows, int64_t width, const Work& work) {
  const int64_t scales = scales_of(width);
  at::parallel_for(0, rows, kRows, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; row++)
      for (int64_t s = 0; s < scales; s++)
        work(row * width + s * kScaleWidth, std::min(kScaleWidth, width - s * kScaleWidth), row * scales + s);
  });
}

}  // namespace

bool can_pack(const at::Tensor& tensor) {
  return tensor.dim() == 2 && tensor.scalar_type() == at::kFloat && tensor.is_contiguous();
}

PackedRows pack_rows(const at::Tensor& x_NC, Packing packing) {
  MEGALITH_ASSERT(can_pack(x_NC) && packing != Packing::fp32);
  if (packing == Packing::bf16) return {x_NC.to(at::kBFloat16), {}};
  const int64_t rows = x_NC.size(0), width = x_NC.size(1);
  PackedRows packed{tensor::empty({rows, width}, x_NC.options().dtype(at::kChar)),
                    tensor::empty({rows, scales_of(width)}, x_NC.options())};
  const float* from = x_NC.const_data_ptr<float>();
  auto* to = packed.numbers.mutable_data_ptr<int8_t>();
  auto* scales = packed.scales_NS.mutable_data_ptr<float>();
  each_scale(rows, width, [&](int64_t first, int64_t count, int64_t scale) {
    const float most = largest(count, from + first);
    scales[scale] = most / 127;
    encode(count, from + first, most > kSmallest ? 127 / most : 0, to + first);
  });
  return packed;
}

at::Tensor unpack_rows(const PackedRows& packed) {
  if (!packed.scales_NS.defined()) return packed.numbers.to(at::kFloat);
  const int64_t rows = packed.numbers.size(0), width = packed.numbers.size(1);
  at::Tensor x_NC = tensor::empty({rows, width}, packed.scales_NS.options());
  const auto* from = packed.numbers.const_data_ptr<int8_t>();
  const auto* scales = packed.scales_NS.const_data_ptr<float>();
  auto* to = x_NC.mutable_data_ptr<float>();
  each_scale(rows, width, [&](int64_t first, int64_t count, int64_t scale) {
    decode(count, from + first, scales[scale], to + first);
  });
  return x_NC;
}

}  // namespace megalith
