#include "config/resolved.h"

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

}  // namespace

std::string to_yaml(const Config& config) {
  std::string text;
  std::vector<std::string_view> open;  // sections of the line before
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
    std::optional<std::string> a = option.get(before), b = option.get(after);
    if (a != b)
      found.push_back(
          {std::string(option.name), a.value_or("(not set)"), b.value_or("(not set)"), option.may_change});
  }
  return found;
}

Config keep_decisions(const Config& saved, Config now) {
  for (const Option& option : options()) {
    std::optional<std::string> decided = option.get(saved);
    if (option.may_change || option.get(now) != kOpen || !decided || decided == kOpen) continue;
    set_option(option, now, parse_yaml(*decided, "saved config", false));
  }
  return now;
}

}  // namespace megalith
