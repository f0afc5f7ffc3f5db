#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

namespace megalith {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr double kKi = 1024.0;
constexpr std::array<Unit, 16> kByteUnits{{{"", 1}, {"b", 1}, {"k", 1e3}, {"kb", 1e3}, {"m", 1e6}, {"mb", 1e6},
    {"g", 1e9}, {"gb", 1e9}, {"t", 1e12}, {"tb", 1e12}, {"kib", kKi}, {"mib", kKi * kKi},
    {"gib", kKi * kKi * kKi}, {"tib", kKi * kKi * kKi * kKi}, {"byte", 1}, {"bytes", 1}}};
constexpr std::array<Unit, 5> kCountUnits{{{"", 1}, {"k", 1e3}, {"m", 1e6}, {"b", 1e9}, {"t", 1e12}}};

template <size_t N>
std::optional<int64_t> parse(std::string_view text, const std::array<Unit, N>& units) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  size_t digits = 0;
  while (digits < text.size() && (std::isdigit(static_cast<unsigned char>(text[digits])) || text[digits] == '.' ||
                                  (text[digits] == '_' && digits > 0)))
    digits++;
  if (digits == 0) return std::nullopt;
  std::string number;
  for (char c : text.substr(0, digits))
    if (c != '_') number += c;
  std::string unit;
  for (char c : text.substr(digits))
    if (c != ' ') unit += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const Unit& u : units) {
    if (unit != u.name) continue;
    if (u.factor == 1 && number.find('.') == std::string::npos) {  // exact, also above 2^53
      int64_t whole = 0;
      auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), whole);
      if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
      return whole;
    }
    double value = 0;
    auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
    double scaled = value * u.factor;
    if (!(scaled < 9.2e18)) return std::nullopt;
    double rounded = std::nearbyint(scaled);
    if (std::abs(rounded - scaled) > 1e-6 * std::max(1.0, scaled)) return std::nullopt;
    return static_cast<int64_t>(rounded);
  }
  return std::nullopt;
}

std::string trimmed(double value, std::string_view suffix) {
  int digits = value < 10 ? 2 : value < 100 ? 1 : 0;
  return fmt::format("{:.{}f}{}", value, digits, suffix);
}

}  // namespace

std::optional<Bytes> parse_bytes(std::string_view text) {
  auto value = parse(text, kByteUnits);
  if (!value) return std::nullopt;
  return Bytes(*value);
}

std::optional<int64_t> parse_count(std::string_view text) { return parse(text, kCountUnits); }

std::string show(Bytes bytes) {
  double v = static_cast<double>(bytes.value);
  if (std::abs(v) < kKi) return fmt::format("{} B", bytes.value);
  if (std::abs(v) < kKi * kKi) return trimmed(v / kKi, " KiB");
  if (std::abs(v) < kKi * kKi * kKi) return trimmed(v / kKi / kKi, " MiB");
  return trimmed(v / kKi / kKi / kKi, " GiB");
}

std::string show_at_least(Bytes bytes) {
  if (bytes.value < 1 << 20) return fmt::format("{} B", bytes.value);  // smaller units cannot be parsed with a fraction
  std::string text = show(bytes);
  // show() may round down. Raise the value until its text is large enough. The last digit of the text is at most a hundredth
  // of the size, so a few steps are enough.
  const Bytes small_step(bytes.value / 2000);
  for (Bytes up = bytes; parse_bytes(text).value_or(up) < bytes; text = show(up)) up += small_step;
  return text;
}

std::string show_count(int64_t count) {
  double v = static_cast<double>(count);
  if (std::abs(v) < 1e4) return fmt::format("{}", count);
  if (std::abs(v) < 1e6) return trimmed(v / 1e3, "k");
  if (std::abs(v) < 1e9) return trimmed(v / 1e6, "M");
  return trimmed(v / 1e9, "B");
}

std::string show_seconds(double seconds) {
  if (!(seconds >= 0)) return "?";
  if (seconds < 0.0995) return fmt::format("{:.1f}ms", seconds * 1e3);
  if (seconds < 59.95) return fmt::format("{:.1f}s", seconds);
  int64_t whole = std::llround(seconds);
  if (whole < 3600) return fmt::format("{}m {:02}s", whole / 60, whole % 60);
  return fmt::format("{}h {:02}m", whole / 3600, whole % 3600 / 60);
}

}  // namespace megalith
