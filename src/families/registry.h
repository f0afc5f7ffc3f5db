// All families, by name.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "families/family.h"

namespace megalith {

// Those of list.h in its order, then those that tests have registered.
std::vector<const Family*> families();
const Family* find_family(std::string_view name);  // null: there is none

std::vector<std::string_view> family_names();
// Names of the families for which `holds` is true, in the order of families().
template <class Predicate>
std::vector<std::string_view> family_names(const Predicate& holds) {
  std::vector<std::string_view> names;
  for (const Family* family : families())
    if (holds(*family)) names.push_back(family->name);
  return names;
}

// "a model that predicts the next token (gpt2, llama)", for refusals of other models.
std::string next_token_models();

// A family that exists while this object does: for tests. Register it before threads ask for families.
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
