// SentencePiece's table of text rewriting rules ("precompiled_charsmap"): a double array in the layout of darts-clone
// with the strings to replace, then the results, each terminated by a zero byte.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

class Charsmap {
 public:
  struct Rule {
    size_t length;            // bytes of the text that the rule replaces
    std::string_view result;  // valid as long as the Charsmap
  };

  // Throws a UserError that names `where` if the bytes are not such a table. An empty table has no rules.
  Charsmap(std::string_view bytes, const std::string& where);

  // Consider the rules whose left side is a prefix of the text. These return the rule with the longest or the shortest one.
  std::optional<Rule> longest(std::string_view text) const { return find(text, true); }
  std::optional<Rule> shortest(std::string_view text) const { return find(text, false); }

 private:
  std::optional<Rule> find(std::string_view text, bool longest) const;

  std::vector<uint32_t> units_;
  std::string results_;
};

}  // namespace megalith
