#include "config/pacing_text.h"

#include <fmt/format.h>

#include "base/join.h"
#include "config/option_types.h"

namespace megalith {
namespace {

Yaml scalar(std::string text, const std::string& where) {
  Yaml value;
  value.kind = Yaml::Kind::scalar;
  value.text = std::move(text);
  value.where = where;
  return value;
}

}  // namespace

std::string_view span_form() {
  return "a whole number of steps or tokens from 1, such as 5000 steps or 20M tokens";
}
std::string_view pacing_form() {
  return "linear, root NUMBER (from 0.01 to 100), or a table [[0, VALUE], [BEGIN, VALUE], ...] whose values do not decrease";
}

std::optional<std::pair<int64_t, Counted>> read_span(const Yaml& value) {
  if (value.kind != Yaml::Kind::scalar) return std::nullopt;
  const size_t space = value.text.rfind(' ');
  std::string unit = space == std::string::npos ? value.text : value.text.substr(space + 1);
  if (unit == "step" || unit == "token") unit += 's';
  if (unit != "steps" && unit != "tokens") return std::nullopt;
  const Counted counted = unit == "steps" ? Counted::steps : Counted::tokens;
  if (space == std::string::npos) return std::pair{int64_t{0}, counted};
  auto count = read_count(scalar(value.text.substr(0, space), value.where), between(1, kLongest));
  if (!count) return std::nullopt;
  return std::pair{*count, counted};
}

bool read_pacing(const Yaml& value, PacingSettings& into) {
  if (value.kind == Yaml::Kind::scalar) {
    into.table.clear();
    if (value.text == "linear") {
      into.root = 1;
      return true;
    }
    if (!value.text.starts_with("root ")) return false;
    auto root = read_number(scalar(value.text.substr(5), value.where), between(0.01, 100));
    if (root) into.root = *root;
    return root.has_value();
  }
  if (value.kind != Yaml::Kind::list || value.items.empty()) return false;
  std::vector<PacingSettings::Point> table;
  for (const Yaml& item : value.items) {
    if (item.kind != Yaml::Kind::list || item.items.size() != 2) return false;
    auto begin = read_count(item.items[0], between(0, kLongest));
    auto at = read_number(item.items[1], Range{});
    if (auto count = read_count(item.items[1], between(0, kLongest)); !at && count) at = static_cast<double>(*count);  // 1k
    if (!begin || !at) return false;
    if (table.empty() ? *begin != 0 : *begin <= table.back().begin || *at < table.back().value) return false;
    table.push_back({*begin, *at});
  }
  into.table = std::move(table);
  into.root = 1;
  return true;
}

void settle_ends(PacingSettings& pacing) {
  pacing.from = pacing.table.front().value;
  pacing.to = pacing.table.back().value;
  pacing.step = 0;
  pacing.over = pacing.table.back().begin;
}

std::string write_span(const PacingSettings& pacing) {
  if (!pacing.table.empty()) return std::string(name_of(pacing.unit));
  return fmt::format("{} {}", pacing.over, name_of(pacing.unit));
}

std::string write_pacing(const PacingSettings& pacing) {
  if (pacing.table.empty()) return pacing.root == 1 ? "linear" : fmt::format("root {}", write_number(pacing.root));
  std::vector<std::string> points;
  for (const auto& [begin, value] : pacing.table) points.push_back(fmt::format("[{}, {}]", begin, write_number(value)));
  return fmt::format("[{}]", join(points, ", "));
}

}  // namespace megalith
