// Patterns of tokenizer.json files, on PCRE2 with its just-in-time compiler. They were written for Oniguruma;
// the known differences in meaning are translated: \s (Unicode's White_Space, where PCRE2 has U+180E as well)
// and the letters, numbers and marks of \p{…} that are younger than PCRE2's tables.
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

  // UserError naming `where` and the pattern if it is not one.
  Regex(std::string_view pattern, const std::string& where);
  ~Regex();
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  // The leftmost match that begins at `from` or later. Bytes that are not UTF-8 match nothing. Thread-safe.
  std::optional<Match> find(std::string_view text, size_t from) const;

  // Quotes a literal for use in a pattern.
  static std::string quote(std::string_view literal);

 private:
  std::string pattern_;
  void* code_ = nullptr;  // pcre2_code, owned
};

}  // namespace megalith
