#include "base/dtype.h"

#include <array>
#include <bit>
#include <cstring>

#include "base/error.h"

namespace megalith {
namespace {

static_assert(std::endian::native == std::endian::little,
              "files hold little-endian numbers as they lie in memory");

struct Facts {
  DType dtype;
  std::string_view safetensors, torch;
  int64_t size;
};

constexpr std::array<Facts, 13> all{{{DType::f64, "F64", "float64", 8},
                                     {DType::f32, "F32", "float32", 4},
                                     {DType::f16, "F16", "float16", 2},
                                     {DType::bf16, "BF16", "bfloat16", 2},
                                     {DType::i64, "I64", "int64", 8},
                                     {DType::i32, "I32", "int32", 4},
                                     {DType::i16, "I16", "int16", 2},
                                     {DType::i8, "I8", "int8", 1},
                                     {DType::u64, "U64", "uint64", 8},
                                     {DType::u32, "U32", "uint32", 4},
                                     {DType::u16, "U16", "uint16", 2},
                                     {DType::u8, "U8", "uint8", 1},
                                     {DType::boolean, "BOOL", "bool", 1}}};

const Facts& facts(DType dtype) {
  const Facts& found = all[static_cast<size_t>(dtype)];
  MEGALITH_ASSERT(found.dtype == dtype);
  return found;
}

template <class Stored, class Convert>
void widen(std::span<const std::byte> bytes, std::span<float> out, Convert convert) {
  const std::byte* from = bytes.data();
  for (float& value : out) {
    Stored stored;
    std::memcpy(&stored, from, sizeof stored);
    value = convert(stored);
    from += sizeof stored;
  }
}

template <class Convert>
void narrow(std::span<const float> values, std::span<std::byte> out, Convert convert) {
  std::byte* to = out.data();
  for (float value : values) {
    uint16_t stored = convert(value);
    std::memcpy(to, &stored, sizeof stored);
    to += sizeof stored;
  }
}

}  // namespace

std::string_view safetensors_name(DType dtype) {
  return facts(dtype).safetensors;
}
std::string_view torch_name(DType dtype) {
  return facts(dtype).torch;
}
int64_t size_of(DType dtype) {
  return facts(dtype).size;
}

bool is_float(DType dtype) {
  return dtype == DType::f64 || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

std::optional<DType> dtype_from_safetensors(std::string_view name) {
  for (const Facts& f : all)
    if (f.safetensors == name) return f.dtype;
  return std::nullopt;
}

float f32_from_bf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

float f32_from_f16(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16, exponent = bits >> 10 & 31,
           mantissa = bits & 1023;
  if (exponent == 0) {  // zero and subnormals: multiples of 2^-24, exact in float32
    float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  uint32_t wide = exponent == 31 ? 255 : exponent + 112;  // infinities and NaNs keep an exponent with all bits set
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

uint16_t bf16_from_f32(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<uint16_t>(bits >> 16 | 0x40);  // a NaN stays a NaN
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

uint16_t f16_from_f32(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7FFFFFFF;
  uint32_t result;
  if (magnitude > 0x7F800000) {
    result = 0x7E00;
  } else if (magnitude >= 0x477FF000) {  // 65520: halfway between the largest float16 (65504) and 65536
    result = 0x7C00;
  } else if (magnitude < 0x38800000) {
    // Below 2^-14, the spacing of float16 is 2^-24. The spacing of float32 at 0.5 is the same: the addition rounds for us.
    result = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - std::bit_cast<uint32_t>(0.5f);
  } else {
    result = (magnitude - (112u << 23) + 0xFFF + (magnitude >> 13 & 1)) >> 13;
  }
  return static_cast<uint16_t>(sign | result);
}

void to_f32(DType dtype, std::span<const std::byte> bytes, std::span<float> out) {
  MEGALITH_ASSERT(static_cast<int64_t>(bytes.size()) == static_cast<int64_t>(out.size()) * size_of(dtype));
  switch (dtype) {
    case DType::f32:
      if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
      return;
    case DType::f64:
      return widen<double>(bytes, out, [](double d) { return static_cast<float>(d); });
    case DType::f16:
      return widen<uint16_t>(bytes, out, f32_from_f16);
    case DType::bf16:
      return widen<uint16_t>(bytes, out, f32_from_bf16);
    default:
      MEGALITH_ASSERT(false, "{} is not a floating-point type", safetensors_name(dtype));
  }
}

void from_f32(DType dtype, std::span<const float> values, std::span<std::byte> out) {
  MEGALITH_ASSERT(static_cast<int64_t>(out.size()) == static_cast<int64_t>(values.size()) * size_of(dtype));
  switch (dtype) {
    case DType::f32:
      if (!values.empty()) std::memcpy(out.data(), values.data(), out.size());
      return;
    case DType::f16:
      return narrow(values, out, f16_from_f32);
    case DType::bf16:
      return narrow(values, out, bf16_from_f32);
    default:
      MEGALITH_ASSERT(false, "no conversion from float32 to {}", safetensors_name(dtype));
  }
}

}  // namespace megalith
