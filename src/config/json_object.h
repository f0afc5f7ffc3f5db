// An object of a JSON file that others write, read key by key. Each read says what it takes; anything else is a UserError
// with the file, the whole path of the key, what was expected and what was there. null is as good as no key.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "config/options.h"

namespace megalith {

class JsonObject {
 public:
  using Json = nlohmann::ordered_json;
  enum class Kind { boolean, number, text, list, object };

  // Borrows `json`. `path` is its place in the file `where`, keys with dots between them; empty: the whole file.
  JsonObject(const Json& json, std::string where, std::string path);

  std::vector<std::string> keys() const;
  std::string path(const std::string& key) const;  // of a key; of the object itself where it is empty
  bool has(const std::string& key) const { return find(key) != nullptr; }

  bool flag(const std::string& key);         // false where there is none
  std::string text(const std::string& key);  // empty where there is none; never with NUL
  JsonObject object(const std::string& key);  // an empty one where there is none
  double number(const std::string& key, const Range& range);
  int64_t whole(const std::string& key, const Range& range);  // 5e3 is whole, 10.5 is not
  std::vector<double> numbers(const std::string& key, const Range& range, bool whole);
  void skip(const std::string& key, Kind kind);  // of this kind if it is there, and of no use

  // Paths of the keys that none of the above asked for.
  std::vector<std::string> unread() const;

  [[noreturn]] void refuse(const std::string& key, const std::string& expected, const std::string& got,
                           const std::string& hint = "") const;
  // The same of one value of a list.
  [[noreturn]] void refuse_item(const std::string& key, size_t index, const std::string& expected,
                                const std::string& got) const;

 private:
  const Json* find(const std::string& key) const;
  const Json* take(const std::string& key, Kind kind);  // null where there is none

  const Json& json_;
  std::string where_, path_;
  std::set<std::string> read_;
};

}  // namespace megalith
