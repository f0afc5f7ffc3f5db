#include "checkpoint/tensor_spec.h"

#include <fmt/ranges.h>

namespace megalith {

std::string show_shape(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace megalith
