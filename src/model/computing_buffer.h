// The buffer that a block computes with: its parameters in the type of the computation. In 16 bits, those that are wide all
// the same (ParameterSpec::wide) lie once more after them, one after the other, in float32.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>

#include "families/block_spec.h"

namespace megalith {

// Of such a type, for the whole buffer.
int64_t computing_elements(const BlockSpec& spec, at::ScalarType type);
// The wide ones of a buffer of 16 bits that has them.
at::Tensor wide_values(const BlockSpec& spec, const at::Tensor& computing);
// Element `begin` of the flat parameters and those after it, from float32. `copy(from, to)`: where the buffer is a device's.
using CopyTo = std::function<void(const at::Tensor& from, const at::Tensor& to)>;
void write_computing(const BlockSpec& spec, const at::Tensor& computing, int64_t begin, const at::Tensor& values,
                     const CopyTo& copy = [](const at::Tensor& from, const at::Tensor& to) { to.copy_(from); });

}  // namespace megalith
