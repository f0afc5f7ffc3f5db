#include "model/kernels/row_copies.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/error.h"
#include "model/tensor_ops.h"

namespace megalith::kernels {
namespace {

constexpr int64_t kRowsAThread = 64;  // minimum; a thread is not worth its start-up for fewer rows

int64_t row_bytes(const at::Tensor& x_NC) { return x_NC.size(1) * static_cast<int64_t>(x_NC.element_size()); }
const std::byte* bytes_of(const at::Tensor& x_NC) { return static_cast<const std::byte*>(x_NC.const_data_ptr()); }

}  // namespace

at::Tensor gather_rows(const at::Tensor& x_NC, std::span<const int64_t> from) {
  const at::Tensor x = x_NC.contiguous();
  at::Tensor out_RC = tensor::empty({std::ssize(from), x.size(1)}, x.options());
  const int64_t row = row_bytes(x);
  const std::byte* source = bytes_of(x);
  auto* out = static_cast<std::byte*>(out_RC.mutable_data_ptr());
  at::parallel_for(0, std::ssize(from), kRowsAThread, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++)
      std::memcpy(out + r * row, source + from[static_cast<size_t>(r)] * row, static_cast<size_t>(row));
  });
  return out_RC;
}

at::Tensor replace_rows(const at::Tensor& x_NC, std::span<const int64_t> at, const at::Tensor& y_KC) {
  MEGALITH_ASSERT(y_KC.size(0) == std::ssize(at) && y_KC.size(1) == x_NC.size(1) && y_KC.scalar_type() == x_NC.scalar_type(),
                  "{} rows for {} places", y_KC.size(0), at.size());
  const at::Tensor x = x_NC.contiguous(), y = y_KC.contiguous();
  at::Tensor out_NC = tensor::empty_like(x);
  const int64_t row = row_bytes(x);
  const std::byte *kept = bytes_of(x), *placed = bytes_of(y);
  auto* out = static_cast<std::byte*>(out_NC.mutable_data_ptr());
  at::parallel_for(0, x.size(0), kRowsAThread, [&](int64_t begin, int64_t end) {
    auto next = std::ranges::lower_bound(at, begin);
    for (int64_t r = begin; r < end; r++) {
      const bool replaced = next != at.end() && *next == r;
      const std::byte* source = replaced ? placed + (next++ - at.begin()) * row : kept + r * row;
      std::memcpy(out + r * row, source, static_cast<size_t>(row));
    }
  });
  return out_NC;
}

}  // namespace megalith::kernels
