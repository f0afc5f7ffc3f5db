#include "config/known_elsewhere.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/nearest.h"
#include "config/options.h"

namespace megalith {
namespace {

// True if `word` is one of `words`, which have spaces between them.
bool is_among(const std::string& word, std::string_view words) {
  return !word.empty() && fmt::format(" {} ", words).find(fmt::format(" {} ", word)) != std::string::npos;
}

// Returns the row for a key, or for its last part. Null: the key is not in the table.
const KnownKey* find_known(std::string_view key) {
  for (const std::string_view part : {key, key.substr(key.rfind('.') + 1)})
    for (const KnownKey& row : known_keys())
      if (is_among(plain_word(part), row.theirs)) return &row;
  return nullptr;
}

}  // namespace

std::string plain_word(std::string_view word) {
  std::string result;
  for (const char c : word)
    if (c != '_' && c != '-') result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::optional<std::string> advice_for_key(std::string_view key) {
  const KnownKey* known = find_known(key);
  if (!known) return std::nullopt;
  if (known->ours.empty()) return std::string(known->advice);
  return fmt::format("use {}{}{}", known->ours, known->advice.empty() ? "" : "; ", known->advice);
}

std::string_view ours_for(std::string_view key) {
  const KnownKey* known = find_known(key);
  return known ? known->ours : std::string_view{};
}

std::string meaning_of(std::string_view key, const Yaml& value, const Config& config) {
  const KnownKey* known = find_known(key);
  return known && known->meaning ? known->meaning(value, config) : "";
}

std::string_view section_meant(std::string_view name) {
  if (find_known(name)) return is_section(ours_for(name)) ? ours_for(name) : std::string_view{};
  const size_t end = std::min(name.rfind('.') + 1, name.size());
  std::vector<std::string_view> ends, sections;  // of the same section, or of all
  for (const std::string_view section : section_names()) {
    const size_t begin = section.rfind('.') + 1;
    if (end > 0 && section.substr(0, begin) != name.substr(0, end)) continue;
    ends.push_back(section.substr(begin));
    sections.push_back(section);
  }
  const auto same = std::ranges::find(ends, plain_word(name.substr(end)), plain_word);
  const auto near = same == ends.end() ? std::ranges::find(ends, nearest(name.substr(end), ends)) : same;
  return near == ends.end() ? std::string_view{} : sections[static_cast<size_t>(near - ends.begin())];
}

std::string_view word_for(std::string_view option, std::string_view value) {
  const std::string word = plain_word(value);
  for (const KnownWord& known : known_words())
    if (known.option == option && is_among(word, known.theirs)) return known.ours;
  return {};
}

}  // namespace megalith
