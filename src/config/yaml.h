// YAML as a plain tree with places, built from yaml-cpp's events. Depth and size are bounded. Anchors, tags, second
// documents and duplicate keys are not allowed. Any malformed input is a UserError.
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
      const;  // for the "got" part of a message: the text, "a list of length 3", "a mapping", "nothing"
};

struct Yaml::Entry {
  std::string first;
  Yaml second;
};

// Returns a text as messages show it: cut if it is long, quoted if it has spaces at its ends or control characters.
std::string describe_text(const std::string& text);

bool is_utf8(std::string_view text);

// Places are `where:LINE` if `numbered`, otherwise `where`.
Yaml parse_yaml(std::string_view text, const std::string& where, bool numbered = true);

// Returns a string as a YAML scalar that reads back equal: plain if that is safe, otherwise double-quoted.
std::string quote_yaml(std::string_view text);

}  // namespace megalith
