#include "config/resolved.h"

#include <algorithm>

#include "base/error.h"
#include "config/options.h"
#include "config/yaml.h"

namespace megalith {
namespace {

constexpr std::string_view kOpen = "auto";

std::vector<std::string_view> parts(std::string_view name) {
  std::vector<std::string_view> split;
  for (size_t dot; (dot = name.find('.')) != std::string_view::npos; name.remove_prefix(dot + 1))
    split.push_back(name.substr(0, dot));
  split.push_back(name);
  return split;
}

std::vector<OptionPiece> whole(const Option& option, const Config& config) {
  std::optional<std::string> value = option.get(config);
  if (!value) return {};
  return {{std::string(option.name), std::move(*value), option.may_change}};
}

const OptionPiece* find_piece(const std::vector<OptionPiece>& pieces, std::string_view key) {
  const auto found = std::ranges::find(pieces, key, &OptionPiece::key);
  return found == pieces.end() ? nullptr : &*found;
}

}  // namespace

std::string to_yaml(const Config& config) {
  std::string text;
  std::vector<std::string_view> open;  // sections of the previous line
  for (const Option& option : options()) {
    std::optional<std::string> value = option.get(config);
    if (!value) continue;
    std::vector<std::string_view> path = parts(option.name);
    size_t common = 0;
    while (common < open.size() && common + 1 < path.size() && open[common] == path[common]) common++;
    for (size_t level = common; level + 1 < path.size(); level++)
      text += fmt::format("{:{}}{}:\n", "", 2 * level, path[level]);
    text += fmt::format("{:{}}{}: {}\n", "", 2 * (path.size() - 1), path.back(), *value);
    path.pop_back();
    open = path;
  }
  return text;
}

std::vector<Difference> differences(const Config& before, const Config& after) {
  std::vector<Difference> found;
  for (const Option& option : options()) {
    std::vector<OptionPiece> had, have;
    if (option.pieces) {
      had = option.pieces(before);
      have = option.pieces(after);
    }
    if (had.empty() || have.empty()) {  // cannot compare piece by piece
      had = whole(option, before);
      have = whole(option, after);
    }
    const auto value = [](const OptionPiece* piece) { return piece ? piece->value : "(not set)"; };
    for (const OptionPiece& a : had)
      if (const OptionPiece* b = find_piece(have, a.key); !b || b->value != a.value)
        found.push_back({a.key, a.value, value(b), a.may_change});
    for (const OptionPiece& b : have)
      if (!find_piece(had, b.key)) found.push_back({b.key, value(nullptr), b.value, b.may_change});
  }
  return found;
}

bool keeps_decision(const Option& option, const Config& saved, const Config& now) {
  const std::optional<std::string> decided = option.get(saved);
  return !option.may_change && option.get(now) == kOpen && decided && decided != kOpen;
}

Config keep_decisions(const Config& saved, Config now) {
  for (const Option& option : options())
    if (keeps_decision(option, saved, now)) set_option(option, now, parse_yaml(*option.get(saved), "config.yaml", false));
  // If the settings give no dropout, the folder's dropout applies.
  if (!now.model.from.empty() && !now.model.shape.dropout.any()) now.model.shape.dropout = saved.model.shape.dropout;
  return now;
}

}  // namespace megalith
