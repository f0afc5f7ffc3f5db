// Looks up families by name.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "families/family.h"

namespace megalith {

// Returns the families of list.h in its order, then those that tests have registered.
std::vector<const Family*> families();
const Family* find_family(std::string_view name);  // null if no family has this name

std::vector<std::string_view> family_names();
// Returns the names of the families for which `holds` is true, in the order of families().
template <class Predicate>
std::vector<std::string_view> family_names(const Predicate& holds) {
  std::vector<std::string_view> names;
  for (const Family* family : families())
    if (holds(*family)) names.push_back(family->name);
  return names;
}

// Returns "a model that predicts the next token (gpt2, llama)", for errors about other models.
std::string next_token_models();

// Registers a family while this object exists. For tests. Create it before other threads ask for families.
class ExtraFamily {
 public:
  explicit ExtraFamily(const Family& family);
  ~ExtraFamily();
  ExtraFamily(const ExtraFamily&) = delete;
  ExtraFamily& operator=(const ExtraFamily&) = delete;

 private:
  const Family& family_;
};

}  // namespace megalith
