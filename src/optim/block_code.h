// Numbers in one byte each, with a float32 scale for every block of them.
//
// The bits of a positive float32, read as an integer, are nearly its logarithm; a quarter of them, so read, are those
// of nearly its fourth root. The code of a number is that fourth root, from 0 to 255 for numbers that are never
// negative, from 0 to 127 under a sign for others, rounded to a whole number; the largest of a block gets the largest
// code. Both ways are a shift of bits, a conversion and a product: loops over them vectorise.
//
// Between two codes numbers lie as on a ruler (four octaves share the codes from one power of two to the next, so the
// steps are equal within an octave), therefore rounding up with the probability of the rest gives the number itself on
// average. What a code can be wrong by, relative to the number: with 255 codes at most 1/32 for numbers down to 1/16
// of the block's largest, 1/16 down to 1/256, 1/8 down to 2^-12, 1/4 down to 2^-16, doubling every four octaves, to 1
// at 2^-24; with 127 codes twice that. Rounded to nearest: half of it. Below the last step (2^-24 or, under a sign,
// 2^-20 of the largest) numbers that are never negative are raised to it (they divide), others become it or zero.
#pragma once
#include <cstdint>
#include <span>

namespace megalith {

// Returns the block's scale. `random`: 16 bits an element; empty: to nearest. Values are finite; a block without one
// of at least 1e-35 is kept as zeros, which are bytes of zero.
float encode_block(std::span<const float> values, bool negative, std::span<const uint16_t> random, uint8_t* codes);
void decode_block(std::span<const uint8_t> codes, bool negative, float scale, float* values);

}  // namespace megalith
