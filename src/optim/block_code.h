// Stores numbers in one byte each, with one float32 scale per block of numbers.
//
// The bits of a positive float32, read as an integer, are nearly proportional to its logarithm. A quarter of this integer
// gives the bits of nearly its fourth root. The code of a number is this fourth root, rounded to a whole number. Codes are 0
// to 255 for numbers that are never negative, and 0 to 127 with a sign bit for others. The largest number of a block gets
// the largest code. Encoding and decoding are a shift of bits, a conversion and a product, so their loops vectorise.
//
// The codes from one power of two to the next cover four octaves, and the steps within an octave are equal. So decoding is
// linear between two neighbouring codes. A number is exact on average if the probability to round it up is its distance from
// the lower code.
//
// Largest relative error of a number with 255 codes. The number is relative to the largest of its block:
//   above 1/16    1/32
//   above 1/256   1/16
//   above 2^-12   1/8
//   above 2^-16   1/4
// The error doubles every four octaves and is 1 at 2^-24. With 127 codes it is twice as large. With rounding to nearest it
// is half as large. The smallest code stands for 2^-24 of the largest number, or 2^-20 with a sign. Smaller numbers that are
// never negative get the smallest code, because they are divisors. Other smaller numbers get the smallest code or zero.
#pragma once
#include <cstdint>
#include <span>

namespace megalith {

// Returns the block's scale. `random` has 16 bits per element; if it is empty, values are rounded to nearest. All values
// must be finite. If all are below 1e-35 in size, they are stored as zeros, which are zero bytes.
float encode_block(std::span<const float> values, bool negative, std::span<const uint16_t> random, uint8_t* codes);
void decode_block(std::span<const uint8_t> codes, bool negative, float scale, float* values);

}  // namespace megalith
