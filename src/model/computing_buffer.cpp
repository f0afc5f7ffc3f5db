#include "model/computing_buffer.h"

#include <algorithm>

#include "base/error.h"

namespace megalith {

int64_t computing_elements(const BlockSpec& spec, at::ScalarType type) {
  return computing_elements(spec, static_cast<int64_t>(c10::elementSize(type)));
}

at::Tensor wide_values(const BlockSpec& spec, const at::Tensor& computing) {
  MEGALITH_ASSERT(computing.numel() == computing_elements(spec, computing.scalar_type()), "{}", spec.name);
  return computing.narrow(0, spec.flat_size, computing.numel() - spec.flat_size).view(at::kFloat);
}

void write_computing(const BlockSpec& spec, const at::Tensor& computing, int64_t begin, const at::Tensor& values,
                     const CopyTo& copy) {
  const int64_t end = begin + values.numel();
  copy(values, computing.narrow(0, begin, values.numel()));
  if (computing.numel() == spec.flat_size) return;
  for (const ParameterSpec& p : spec.parameters) {
    const int64_t first = std::max(begin, p.offset), count = std::min(end, p.offset + p.size()) - first;
    if (p.wide && count > 0)
      copy(values.narrow(0, first - begin, count), wide_values(spec, computing).narrow(0, spec.wide_before(first), count));
  }
}

}  // namespace megalith
