#include "checkpoint/tensor_spec.h"

#include <fmt/format.h>

#include "base/join.h"

namespace megalith {

std::string show_shape(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", join(shape, ", "));
}

}  // namespace megalith
