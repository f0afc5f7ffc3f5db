// Standard normal random numbers in bulk. A number depends only on the stream and the element's index. It has the same
// bits on every machine.
#pragma once
#include <cstdint>
#include <span>

#include "base/philox.h"

namespace megalith {

// The x86-64 levels that the loops are compiled for.
enum class VectorLevel : uint8_t { plain, v3, v4 };
VectorLevel best_vector_level();  // the best one that this processor has

// out[i] becomes element begin + i of the stream. Elements 4b to 4b + 3 are two Box-Muller pairs, made from block b of
// Philox: one word gives the radius, the next word the angle. All arithmetic is float32. Results differ from float64
// arithmetic by a few units in the last place of float32.
void fill_normals(const Philox& random, uint64_t begin, std::span<float> out,
                  VectorLevel level = best_vector_level());

}  // namespace megalith
