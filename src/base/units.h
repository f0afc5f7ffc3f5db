// Quantities that a user writes with a unit (4GiB, 50M): parsing, types, and printing.
#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace megalith {

template <class Tag>
struct Quantity {
  int64_t value = 0;
  constexpr Quantity() = default;
  constexpr explicit Quantity(int64_t v) : value(v) {}
  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity operator+(Quantity o) const { return Quantity(value + o.value); }
  constexpr Quantity operator-(Quantity o) const { return Quantity(value - o.value); }
  constexpr Quantity& operator+=(Quantity o) { value += o.value; return *this; }
  constexpr Quantity operator*(int64_t k) const { return Quantity(value * k); }
};

using Bytes = Quantity<struct BytesTag>;    // memory and file sizes
using Tokens = Quantity<struct TokensTag>;  // amounts of data

// "4GiB", "512MB", "1073741824", "1.5 GiB"; KB/MB/GB are powers of 1000, KiB/MiB/GiB/TiB of 1024.
// Empty if the text is not a size or does not fit 63 bits.
std::optional<Bytes> parse_bytes(std::string_view text);

// "50M", "1.5B", "32k", "1000000": powers of 1000, upper or lower case. Empty if the text is not a whole number.
std::optional<int64_t> parse_count(std::string_view text);

std::string show(Bytes bytes);             // "1.25 GiB"
std::string show_at_least(Bytes bytes);    // rounded up, so that the shown size is enough
std::string show_count(int64_t count);     // "1.5M"
std::string show_seconds(double seconds);  // "2m 05s", "3.2s", "1h 04m"

}  // namespace megalith
