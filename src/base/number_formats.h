// The formats of numbers: Precision for computing, Packing for storing them between uses.
#pragma once
#include <array>
#include <string_view>

#include "base/enum_names.h"

namespace megalith {

enum class Precision { fp32, bf16, fp16 };
constexpr std::array<std::string_view, 3> names_of(Precision) {
  return {"fp32", "bf16", "fp16"};
}

// The format in which numbers are stored between uses.
enum class Packing { fp32, bf16, int8 };
constexpr std::array<std::string_view, 3> names_of(Packing) {
  return {"fp32", "bf16", "int8"};
}

}  // namespace megalith
