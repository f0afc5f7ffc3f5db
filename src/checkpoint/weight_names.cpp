#include "checkpoint/weight_names.h"

#include <algorithm>

#include "families/registry.h"

namespace megalith {
namespace {

bool is_spelling_of(const std::string& stored, std::string_view name) {
  std::vector<std::string> spellings = other_spellings(std::string(name));
  return std::find(spellings.begin(), spellings.end(), stored) != spellings.end();
}

// Calls found(pair) for the tied pairs of every family until it returns true.
template <class Found>
void find_tied(const Found& found) {
  for (const Family* family : families())
    for (const HfNames::Pair& pair : family->hf_names().tied)
      if (found(pair)) return;
}

}  // namespace

std::vector<std::string> other_spellings(const std::string& name) {
  std::vector<std::string> names{name};
  auto add = [&](std::string spelling) {
    if (std::find(names.begin(), names.end(), spelling) == names.end()) names.push_back(std::move(spelling));
  };
  for (const Family* family : families())
    if (std::string_view prefix = family->hf_names().prefix; name.starts_with(prefix)) add(name.substr(prefix.size()));
  for (const Family* family : families())
    for (const HfNames::Ending& ending : family->hf_names().old_endings)
      for (size_t i = 0, count = names.size(); i < count; i++)
        if (const std::string now = names[i]; now.ends_with(ending.now))
          add(now.substr(0, now.size() - ending.now.size()) + std::string(ending.old));
  return names;
}

std::string tied_to(const std::string& table) {
  std::string head;
  find_tied([&](const HfNames::Pair& pair) {
    if (pair.table == table) head = pair.head;
    return !head.empty();
  });
  return head;
}

std::string table_behind(const std::string& stored, const std::set<std::string>& wanted) {
  std::string behind;
  find_tied([&](const HfNames::Pair& pair) {
    bool table = wanted.contains(std::string(pair.table)), head = wanted.contains(std::string(pair.head));
    if (table != head && is_spelling_of(stored, table ? pair.head : pair.table)) behind = pair.table;
    return !behind.empty();
  });
  return behind;
}

std::string copy_in_files(const std::string& parameter) {
  for (const Family* family : families())
    for (const HfNames::Copy& copy : family->hf_names().copies)
      if (copy.parameter == parameter) return std::string(copy.name);
  return "";
}

std::vector<TensorSpec> with_copies(const std::vector<TensorSpec>& parameters) {
  std::vector<TensorSpec> all;
  for (const TensorSpec& spec : parameters) {
    all.push_back(spec);
    if (std::string copy = copy_in_files(spec.name); !copy.empty()) all.push_back({std::move(copy), spec.dtype, spec.shape});
  }
  return all;
}

bool is_no_parameter(std::string_view stored) {
  for (const Family* family : families()) {
    const HfNames names = family->hf_names();
    for (std::string_view buffer : names.buffers)
      if (stored == buffer || (stored.ends_with(buffer) && stored[stored.size() - buffer.size() - 1] == '.'))
        return true;
    for (std::string_view head : names.other_heads)
      if (stored.starts_with(head)) return true;
  }
  return false;
}

}  // namespace megalith
