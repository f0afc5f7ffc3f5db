#include "config/option_types.h"

#include <fmt/format.h>

#include "base/join.h"

namespace megalith {

std::optional<double> read_number(const Yaml& value, const Range& range) {
  if (value.kind != Yaml::Kind::scalar) return std::nullopt;
  double number = 0;
  const char* end = value.text.data() + value.text.size();
  auto [stopped, error] = std::from_chars(value.text.data(), end, number);
  if (error != std::errc() || stopped != end || !std::isfinite(number) || !range.holds(number))
    return std::nullopt;
  return number;
}

std::optional<int64_t> read_count(const Yaml& value, const Range& range) {
  if (value.kind != Yaml::Kind::scalar) return std::nullopt;
  std::optional<int64_t> number = parse_count(value.text);
  if (number && !range.holds(static_cast<double>(*number))) return std::nullopt;
  return number;
}

std::optional<Bytes> read_size(const Yaml& value) {
  if (value.kind != Yaml::Kind::scalar) return std::nullopt;
  const std::optional<Bytes> size = parse_bytes(value.text);
  const bool has_unit = !read_number(value, {});
  if (!size || static_cast<double>(size->value) < (has_unit ? 1 : kNeedsUnit)) return std::nullopt;
  return size;
}

bool is_text(const Yaml& value) {
  return value.kind == Yaml::Kind::scalar && value.text.find('\0') == std::string::npos;
}

std::optional<bool> read_boolean(const Yaml& value) {
  if (value.kind == Yaml::Kind::scalar && value.text == "true") return true;
  if (value.kind == Yaml::Kind::scalar && value.text == "false") return false;
  return std::nullopt;
}

std::optional<std::vector<std::string>> read_texts(const Yaml& value) {
  auto is_name = [](const Yaml& v) { return is_text(v) && !v.text.empty(); };
  if (is_name(value)) return std::vector{value.text};
  if (value.kind != Yaml::Kind::list) return std::nullopt;
  std::vector<std::string> texts;
  for (const Yaml& item : value.items) {
    if (!is_name(item)) return std::nullopt;
    texts.push_back(item.text);
  }
  return texts;
}

std::string write_number(double value) {
  return fmt::format("{}", value);
}

std::string write_texts(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  for (const std::string& text : texts) quoted.push_back(quote_yaml(text));
  return fmt::format("[{}]", join(quoted, ", "));
}

std::string write_bytes(Bytes size) {
  struct Unit {
    int64_t bytes;
    std::string_view name;
  };
  for (Unit unit : {Unit{1ll << 30, "GiB"}, Unit{1ll << 20, "MiB"}, Unit{1ll << 10, "KiB"}})
    if (size.value % unit.bytes == 0 && size.value > 0)
      return fmt::format("{}{}", size.value / unit.bytes, unit.name);
  return fmt::format("{}{}", size.value, static_cast<double>(size.value) < kNeedsUnit ? "B" : "");
}

}  // namespace megalith
