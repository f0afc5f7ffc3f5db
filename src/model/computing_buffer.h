// The buffer that a block computes with: its parameters in the compute type. If that type has 16 bits, the buffer also holds
// a float32 copy of every wide parameter (ParameterSpec::wide). These copies follow all other parameters.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>

#include "families/block_spec.h"

namespace megalith {

// Returns the size of the whole buffer, in elements of `type`.
int64_t computing_elements(const BlockSpec& spec, at::ScalarType type);
// Returns the float32 copies of a 16-bit buffer that has wide parameters, as a view.
at::Tensor wide_values(const BlockSpec& spec, const at::Tensor& computing);
// Writes the float32 `values` to the parameters from element `begin` of the flat buffer on. A buffer on a device needs its
// own `copy(from, to)`.
using CopyTo = std::function<void(const at::Tensor& from, const at::Tensor& to)>;
void write_computing(const BlockSpec& spec, const at::Tensor& computing, int64_t begin, const at::Tensor& values,
                     const CopyTo& copy = [](const at::Tensor& from, const at::Tensor& to) { to.copy_(from); });

}  // namespace megalith
