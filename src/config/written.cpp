#include "config/written.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "config/known_elsewhere.h"
#include "config/overrides.h"

namespace megalith {
namespace {

// Returns the place of a path such as "[2].to" in a list of mappings. If the entry does not have the key, returns the
// place of the entry.
std::string place_inside(const Yaml& list, std::string_view path) {
  size_t number = 0;
  std::from_chars(path.data() + 1, path.data() + path.size(), number);
  if (number >= list.items.size()) return list.where;
  const Yaml& entry = list.items[number];
  const std::string_view key = path.substr(std::min(path.find('.'), path.size() - 1) + 1);
  const auto written = std::ranges::find(entry.entries, key, &Yaml::Entry::first);
  return written == entry.entries.end() ? entry.where : written->second.where;
}

// Returns the option that the short form of this section sets (`objective: causal` sets objective.kind), or null.
const Option* shorthand(std::string_view section) {
  for (const Option& option : options())
    if (option.shorthand && option.section() == section) return &option;
  return nullptr;
}

// False for options without a value unless the user or a preset gives one.
bool has_default(const Option& option) {
  return !option.default_text.starts_with("none") && option.default_text != "the preset's";
}

// Says what to write instead of a plain value of a section, or of a whole file.
std::string instead_of_plain(std::string_view section, const Yaml& value) {
  if (value.text.find(" = ") != std::string::npos) return "write a colon instead of =, such as lr: 1e-3";
  if (value.kind == Yaml::Kind::list && !value.items.empty() && value.items.front().kind == Yaml::Kind::map)
    return "remove the dashes before its keys";
  if (section.empty()) return "begin with model: and data:";
  const auto first = std::ranges::find(options(), section, &Option::section);
  return fmt::format("write {}: {{{}: ...}}; {}", section.substr(section.rfind('.') + 1), first->key(), keys_of(section));
}

}  // namespace

bool gives_shape(const Option& option) {
  return (option.section() == "model" || option.section() == "model.experts") && option.name != "model.from" &&
         option.name != "model.preset" && option.name != "model.new_head";
}

void Written::add(std::string_view name, const Yaml& value, int layer, Mistakes& mistakes) {
  if (const Option* option = find_option(name)) {
    mistakes.none_in([&] { put(*option, value, layer); });
  } else if (!is_section(name) && !name.empty()) {
    unknown_.push_back({std::string(name), value});
    // The keys in it are read as if it had the right name, so that their mistakes are known, too.
    if (const std::string_view meant = section_meant(name); !meant.empty()) add_entries(meant, value, layer, mistakes);
  } else if (value.kind == Yaml::Kind::map) {
    add_entries(name, value, layer, mistakes);
  } else if (value.kind == Yaml::Kind::null) {
    std::erase_if(values_, [&](const auto& v) {
      return !name.empty() && v.first.starts_with(fmt::format("{}.", name));
    });
  } else if (const Option* plain = shorthand(name)) {
    mistakes.none_in([&] { put(*plain, value, layer); });
  } else {
    mistakes.add(UserError({value.where, std::string(name), "a mapping of keys to values", value.describe(),
                            instead_of_plain(name, value)}));
  }
}

void Written::add_entries(std::string_view section, const Yaml& map, int layer, Mistakes& mistakes) {
  for (const auto& [key, entry] : map.entries)
    add(section.empty() ? key : fmt::format("{}.{}", section, key), entry, layer, mistakes);
}

void Written::put(const Option& option, const Yaml& value, int layer) {
  auto found = values_.find(option.name);
  if (found != values_.end() && found->second.layer == layer)
    throw UserError({value.where, std::string(option.name), "each key once", "a second value",
                     fmt::format("remove one; the first is at {}", found->second.value.where)});
  if (value.kind == Yaml::Kind::null) {
    values_.erase(option.name);
    return;
  }
  for (auto [a, b] : kAlternatives)
    if (option.name == a || option.name == b) replace_in_file(option.name == a ? b : a, layer);
  values_.insert_or_assign(option.name, Value{value, layer});
}

// Removes the file's value of `name` if an override replaces it. Two overrides that contradict each other are refused
// later.
void Written::replace_in_file(std::string_view name, int layer) {
  auto found = values_.find(name);
  if (found != values_.end() && layer > 0 && found->second.layer == 0) values_.erase(found);
}

const Yaml* Written::find(std::string_view name) const {
  auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second.value;
}

std::string Written::where(std::string_view key) const {
  const size_t inside = std::min(key.find('['), key.size());
  const std::string_view name = key.substr(0, inside);
  if (const Yaml* value = find(name)) return inside < key.size() ? place_inside(*value, key.substr(inside)) : value->where;
  const Option* option = find_option(name);
  return option ? where_not_written(*option) : where_of_section(name);
}

// An override decides last, so its place is more useful than a line of the file.
std::string Written::where_of_section(std::string_view section) const {
  const Value* last = nullptr;
  for (const auto& [name, value] : values_)
    if (name.starts_with(fmt::format("{}.", section)) && (!last || value.layer > last->layer)) last = &value;
  return last ? last->value.where : file_;
}

std::string Written::where_not_written(const Option& option) const {
  if (gives_shape(option)) {
    if (const Yaml* preset = find("model.preset")) return fmt::format("{} (preset {})", preset->where, preset->text);
    if (const Yaml* from = find("model.from")) return fmt::format("{} (config.json of {})", from->where, from->text);
  }
  return has_default(option) ? fmt::format("{} (default)", file_) : file_;
}

void Written::refuse_both(std::string_view a, std::string_view b, std::string_view hint) const {
  if (find(a) && find(b))
    throw UserError({where(b), std::string(b), fmt::format("either {} or {}", a, b), "both", std::string(hint)});
}

Written read_settings(std::string_view yaml_text, const std::string& where, std::span<const std::string> overrides,
                      Mistakes& mistakes) {
  Written written(where);
  int layer = 0;
  written.add("", parse_yaml(yaml_text, where), layer, mistakes);
  for (const auto& [key, value] : read_overrides(overrides, mistakes)) written.add(key, value, ++layer, mistakes);
  return written;
}

}  // namespace megalith
