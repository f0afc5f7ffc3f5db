// SentencePiece's table of text rewriting rules ("precompiled_charsmap"): which strings become which, as a
// double array in the layout of darts-clone, then the results, each ended by a zero byte.
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
    size_t length;            // bytes of the text that it takes
    std::string_view result;  // valid as long as the table
  };

  // UserError naming `where` if the bytes are no such table. An empty table has no rules.
  Charsmap(std::string_view bytes, const std::string& where);

  // The rules whose left side the text begins with: the one with the longest, the one with the shortest.
  std::optional<Rule> longest(std::string_view text) const { return find(text, true); }
  std::optional<Rule> shortest(std::string_view text) const { return find(text, false); }

 private:
  std::optional<Rule> find(std::string_view text, bool longest) const;

  std::vector<uint32_t> units_;
  std::string results_;
};

}  // namespace megalith
