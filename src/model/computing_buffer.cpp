#include "model/computing_buffer.h"

#include "base/error.h"

namespace megalith {
namespace {

constexpr int64_t kHalves = 2;  // of 16 bits, in a float32

}  // namespace

int64_t computing_elements(const BlockSpec& spec, at::ScalarType type) {
  return spec.flat_size + (c10::elementSize(type) == 2 ? kHalves * spec.wide_before(spec.flat_size) : 0);
}

at::Tensor wide_values(const BlockSpec& spec, const at::Tensor& computing) {
  MEGALITH_ASSERT(computing.numel() == computing_elements(spec, computing.scalar_type()), "{}", spec.name);
  return computing.narrow(0, spec.flat_size, computing.numel() - spec.flat_size).view(at::kFloat);
}

void write_computing(const BlockSpec& spec, const at::Tensor& computing, int64_t begin, const at::Tensor& values) {
  computing.narrow(0, begin, values.numel()).copy_(values);
  if (computing.numel() == spec.flat_size) return;
  for_each_wide(spec, begin, begin + values.numel(), [&](int64_t from, int64_t to, int64_t count) {
    wide_values(spec, computing).narrow(0, to, count).copy_(values.narrow(0, from, count));
  });
}

}  // namespace megalith
