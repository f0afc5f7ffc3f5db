// Element types of tensors in files, and the conversions between them and float32.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace megalith {

enum class DType : uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8, boolean };

// The name in a safetensors header: "F32", "BF16", "BOOL".
std::string_view safetensors_name(DType dtype);
// Empty for a name we do not know (8-bit floats, for instance).
std::optional<DType> dtype_from_safetensors(std::string_view name);
// The name that Hugging Face and PyTorch use: "float32", "bfloat16".
std::string_view torch_name(DType dtype);
int64_t size_of(DType dtype);  // bytes per element
bool is_float(DType dtype);

float f32_from_bf16(uint16_t bits);
float f32_from_f16(uint16_t bits);
// Round to nearest, ties to even. A value beyond the range becomes infinity; a NaN stays a NaN.
uint16_t bf16_from_f32(float value);
uint16_t f16_from_f32(float value);

// Converts little-endian elements at any alignment to float32. `bytes` holds exactly out.size() elements of a float type.
// float64 is rounded to nearest.
void to_f32(DType dtype, std::span<const std::byte> bytes, std::span<float> out);
// Converts float32 to f32, bf16 or f16.
void from_f32(DType dtype, std::span<const float> values, std::span<std::byte> out);

}  // namespace megalith
