// YAML as a plain tree with places: what yaml-cpp's events say, bounded in depth and size, without anchors,
// tags or second documents, every key once. Any malformed input is a UserError.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace megalith {

struct Yaml {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  std::string text;                                   // scalar
  std::vector<Yaml> items;                            // list
  struct Entry;                                       // key and value
  std::vector<Entry> entries;                         // map, in the order written
  std::string where;                                  // "run.yaml:14" or "command line"

  std::string describe()
      const;  // for the "got" of a message: the text, "a list of 3", "a mapping", "nothing"
};

struct Yaml::Entry {
  std::string first;
  Yaml second;
};

bool is_utf8(std::string_view text);

// `numbered`: places are where:LINE, else just `where`.
Yaml parse_yaml(std::string_view text, const std::string& where, bool numbered = true);

// A string as a YAML scalar that reads back equal: plain where that is safe, else double-quoted.
std::string quote_yaml(std::string_view text);

}  // namespace megalith
