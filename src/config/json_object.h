// Reads an object of a foreign JSON file key by key. Each read function accepts one kind of value. For another kind, it
// throws UserError with the file, the whole path of the key, the expected and the found value. null counts as a missing
// key.
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

  // Borrows `json`. `path` is its place in the file `where`: keys separated by dots; empty for the whole file.
  JsonObject(const Json& json, std::string where, std::string path);

  std::vector<std::string> keys() const;
  std::string path(const std::string& key) const;  // path of a key; of the object itself if `key` is empty
  bool has(const std::string& key) const { return find(key) != nullptr; }

  bool flag(const std::string& key);         // false if the key is missing
  std::string text(const std::string& key);  // empty if the key is missing; never contains NUL
  JsonObject object(const std::string& key);  // an empty object if the key is missing
  double number(const std::string& key, const Range& range);
  int64_t whole(const std::string& key, const Range& range);  // 5e3 is whole, 10.5 is not
  std::vector<double> numbers(const std::string& key, const Range& range, bool whole);
  void skip(const std::string& key, Kind kind);  // checks the kind if the key exists, and ignores the value

  // Returns the paths of the keys that none of the functions above has read.
  std::vector<std::string> unread() const;

  [[noreturn]] void refuse(const std::string& key, const std::string& expected, const std::string& got,
                           const std::string& hint = "") const;
  // The same for one value of a list.
  [[noreturn]] void refuse_item(const std::string& key, size_t index, const std::string& expected,
                                const std::string& got) const;

 private:
  const Json* find(const std::string& key) const;
  const Json* take(const std::string& key, Kind kind);  // null if the key is missing

  const Json& json_;
  std::string where_, path_;
  std::set<std::string> read_;
};

}  // namespace megalith
