// Standard normals in bulk: a function of the stream and the element's index alone, the same bits on every machine.
#pragma once
#include <cstdint>
#include <span>

#include "base/philox.h"

namespace megalith {

// Levels of x86-64 that the loops are compiled for.
enum class VectorLevel : uint8_t { plain, v3, v4 };
VectorLevel best_vector_level();  // of those that this processor has

// out[i]: element begin + i of the stream. Elements 4b to 4b + 3 are two Box-Muller pairs of Philox's block b: a radius
// from one word, an angle from the next. Float32 throughout; within a few units in the last place of float64.
void fill_normals(const Philox& random, uint64_t begin, std::span<float> out,
                  VectorLevel level = best_vector_level());

}  // namespace megalith
