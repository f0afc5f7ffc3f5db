// The buffer that a block computes with: its parameters in the type of the computation. In 16 bits, those that are wide all
// the same (ParameterSpec::wide) lie once more after them, one after the other, in float32.
#pragma once
#include <ATen/core/Tensor.h>

#include "model/block_spec.h"

namespace megalith {

// Of such a type, for the whole buffer.
int64_t computing_elements(const BlockSpec& spec, at::ScalarType type);
// The wide ones of a buffer of 16 bits that has them.
at::Tensor wide_values(const BlockSpec& spec, const at::Tensor& computing);
// Element `begin` of the flat parameters and those after it, from float32; both here, or `computing` on a device.
void write_computing(const BlockSpec& spec, const at::Tensor& computing, int64_t begin, const at::Tensor& values);

// Where the wide parameters lie that elements [begin, end) hold: run(first in the range, first of the wide, elements).
template <class Run>
void for_each_wide(const BlockSpec& spec, int64_t begin, int64_t end, const Run& run) {
  for (const ParameterSpec& p : spec.parameters) {
    const int64_t first = std::max(begin, p.offset), last = std::min(end, p.offset + p.size());
    if (p.wide && first < last) run(first - begin, spec.wide_before(first), last - first);
  }
}

}  // namespace megalith
