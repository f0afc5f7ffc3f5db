// The data of a collective: contiguous elements of one type, owned by the caller.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace megalith {

enum class Element : uint8_t { byte, float32, float64, bfloat16, float16 };

constexpr int64_t size_of(Element element) {
  switch (element) {
    case Element::byte: return 1;
    case Element::float32: return 4;
    case Element::float64: return 8;
    case Element::bfloat16:
    case Element::float16: return 2;
  }
  return 0;
}

struct Buffer {
  std::byte* data = nullptr;
  int64_t count = 0;  // elements
  Element element = Element::byte;

  Buffer(void* begin, int64_t elements, Element type)
      : data(static_cast<std::byte*>(begin)), count(elements), element(type) {}
  Buffer(std::span<float> values) : Buffer(values.data(), std::ssize(values), Element::float32) {}
  Buffer(std::span<double> values) : Buffer(values.data(), std::ssize(values), Element::float64) {}
  Buffer(std::span<std::byte> values) : Buffer(values.data(), std::ssize(values), Element::byte) {}

  int64_t bytes() const { return count * size_of(element); }
};

}  // namespace megalith
