// Patterns of tokenizer.json files, matched by PCRE2 with its just-in-time compiler. The patterns were written for
// Oniguruma, so we translate the known differences. \s is Unicode's White_Space, but PCRE2 also includes U+180E. \p{…}
// includes letters, numbers and marks that are younger than PCRE2's tables.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace megalith {

class Regex {
 public:
  struct Match {
    size_t begin, end;
  };

  // Throws a UserError that names `where` and the pattern if the pattern is not valid.
  Regex(std::string_view pattern, const std::string& where);
  ~Regex();
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  // Returns the leftmost match that begins at `from` or later. Bytes that are not UTF-8 match nothing. Thread-safe.
  std::optional<Match> find(std::string_view text, size_t from) const;

  // Escapes a literal for use in a pattern.
  static std::string quote(std::string_view literal);

 private:
  std::string pattern_;
  void* code_ = nullptr;  // pcre2_code, owned
};

}  // namespace megalith
