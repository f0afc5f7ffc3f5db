#include "text/charsmap.h"

#include <cstring>

#include "base/error.h"

namespace megalith {
namespace {

// The parts of a unit, in the layout of darts-clone.
bool has_leaf(uint32_t unit) {
  return unit >> 8 & 1;
}
uint32_t leaf_value(uint32_t unit) {
  return unit & 0x7FFFFFFF;
}
uint32_t label(uint32_t unit) {
  return unit & 0x800000FF;
}
size_t offset(uint32_t unit) {
  return static_cast<size_t>(unit >> 10) << ((unit & 1u << 9) >> 6);
}

}  // namespace

Charsmap::Charsmap(std::string_view bytes, const std::string& where) {
  if (bytes.empty()) return;
  auto bad = [&](const std::string& got) {
    throw UserError(
        {where, "precompiled_charsmap", "a SentencePiece table of text rewriting rules", got, ""});
  };
  uint32_t size = 0;
  if (bytes.size() < sizeof size) bad("a truncated table");
  std::memcpy(&size, bytes.data(), sizeof size);
  bytes.remove_prefix(sizeof size);
  if (size == 0 || size % sizeof(uint32_t) != 0 || size > bytes.size()) bad("a truncated table");
  units_.resize(size / sizeof(uint32_t));
  std::memcpy(units_.data(), bytes.data(), size);
  results_ = bytes.substr(size);
  results_ += '\0';  // so that every result is terminated
}

std::optional<Charsmap::Rule> Charsmap::find(std::string_view text, bool longest) const {
  if (units_.empty()) return std::nullopt;
  std::optional<Rule> found;
  size_t at = offset(units_[0]);
  for (size_t i = 0; i < text.size(); i++) {
    auto byte = static_cast<unsigned char>(text[i]);
    at ^= byte;
    // The left side of a rule contains no zero byte. A place beyond the table means that the file is damaged.
    if (byte == 0 || at >= units_.size() || label(units_[at]) != byte) break;
    uint32_t unit = units_[at];
    at ^= offset(unit);
    if (!has_leaf(unit)) continue;
    uint32_t value = at < units_.size() ? leaf_value(units_[at]) : 0;
    if (value >= results_.size()) break;
    found = Rule{i + 1, std::string_view(results_.c_str() + value)};
    if (!longest) break;
  }
  return found;
}

}  // namespace megalith
