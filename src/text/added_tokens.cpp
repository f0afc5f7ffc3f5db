#include "text/added_tokens.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "text/char_class.h"
#include "text/component.h"
#include "text/regex.h"
#include "text/token_model.h"
#include "text/utf8.h"

namespace megalith {
namespace {

// \w as defined by Unicode's annex on regular expressions: alphabetic, marks, digits, connecting punctuation, joiners.
// PCRE2 10.42 has no \p{Alphabetic}. It equals letters, letter numbers, and the circled and squared letters listed
// here.
bool is_word(std::string_view character) {
  static const Regex word(
      "[\\p{L}\\p{Nl}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}"
      "-\\x{1f169}"
      "\\x{1f170}-\\x{1f189}]",
      "word characters");
  return word.find(character, 0).has_value();
}

bool touches_word(std::string_view text, size_t begin, size_t end) {
  if (begin > 0) {
    size_t before = previous_code_point(text, begin);
    if (is_word(text.substr(before, begin - before))) return true;
  }
  return end < text.size() && is_word(text.substr(end, code_point_at(text, end).bytes));
}

}  // namespace

std::vector<AddedToken> read_added_tokens(const Component& list) {
  std::vector<AddedToken> tokens;
  if (list.json.is_null()) return tokens;
  size_t index = 0;
  for (const auto& json : list.json) {
    Component component = list.child(json, index++);
    AddedToken token;
    auto id = component.need<int64_t>("id");
    if (id < 0 || id >= kLargestVocab)
      component.bad(fmt::format("an id from 0 to {}", kLargestVocab - 1), std::to_string(id));
    token.id = static_cast<TokenId>(id);
    token.content = component.need<std::string>("content");
    token.special = component.get("special", false);
    token.normalized = component.get("normalized", !token.special);
    token.single_word = component.get("single_word", false);
    token.lstrip = component.get("lstrip", false);
    token.rstrip = component.get("rstrip", false);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

AddedTokenSplitter::AddedTokenSplitter(std::vector<std::pair<std::string, AddedToken>> tokens)
    : tokens_(std::move(tokens)) {
  std::erase_if(tokens_, [](const auto& token) { return token.first.empty(); });
  std::stable_sort(tokens_.begin(), tokens_.end(),
                   [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  for (const auto& [text, token] : tokens_) begins_[static_cast<unsigned char>(text[0])] = true;
  if (std::count(begins_.begin(), begins_.end(), true) == 1)
    only_byte_ = static_cast<int>(std::find(begins_.begin(), begins_.end(), true) - begins_.begin());
}

size_t AddedTokenSplitter::candidate(std::string_view text, size_t from) const {
  if (only_byte_ >= 0) {
    auto* found = static_cast<const char*>(std::memchr(text.data() + from, only_byte_, text.size() - from));
    return found ? static_cast<size_t>(found - text.data()) : text.size();
  }
  while (from < text.size() && !begins_[static_cast<unsigned char>(text[from])]) from++;
  return from;
}

AddedTokenSplitter::Span AddedTokenSplitter::next(std::string_view text, size_t from) const {
  size_t nothing = text.size();
  if (tokens_.empty()) return {nothing, nothing, -1};
  for (size_t at = from; at < text.size();) {
    at = candidate(text, at);
    if (at == text.size()) break;
    auto found = std::find_if(tokens_.begin(), tokens_.end(), [&](const auto& token) {
      return text.compare(at, token.first.size(), token.first) == 0;
    });
    if (found == tokens_.end()) {
      at++;
      continue;
    }
    const AddedToken& token = found->second;
    size_t begin = at, end = at + found->first.size();
    at = end;
    if (token.single_word && touches_word(text, begin, end)) continue;
    while (token.lstrip && begin > from) {
      size_t before = previous_code_point(text, begin);
      if (!CharClasses::get().is_space(code_point_at(text, before).value)) break;
      begin = before;
    }
    while (token.rstrip && end < text.size()) {
      CodePoint point = code_point_at(text, end);
      if (!CharClasses::get().is_space(point.value)) break;
      end += point.bytes;
    }
    return {begin, end, token.id};
  }
  return {nothing, nothing, -1};
}

}  // namespace megalith
