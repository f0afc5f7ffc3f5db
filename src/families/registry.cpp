#include "families/registry.h"

#include <fmt/format.h>

#include "base/join.h"
#include "families/list.h"

namespace megalith {
namespace {

std::vector<const Family*>& registered() {
#define MEGALITH_ADDRESS_OF_FAMILY(name) &name##_family,
  static std::vector<const Family*> all{MEGALITH_FAMILIES(MEGALITH_ADDRESS_OF_FAMILY)};
#undef MEGALITH_ADDRESS_OF_FAMILY
  return all;
}

}  // namespace

std::vector<const Family*> families() { return registered(); }

const Family* find_family(std::string_view name) {
  for (const Family* family : registered())
    if (family->name == name) return family;
  return nullptr;
}

std::vector<std::string_view> family_names() {
  return family_names([](const Family&) { return true; });
}

std::string next_token_models() {
  return fmt::format("a model that predicts the next token ({})",
                     join(family_names([](const Family& family) { return !family.bidirectional; }), ", "));
}

ExtraFamily::ExtraFamily(const Family& family) : family_(family) { registered().push_back(&family); }
ExtraFamily::~ExtraFamily() { std::erase(registered(), &family_); }

}  // namespace megalith
