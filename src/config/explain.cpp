#include <fmt/format.h>

#include "base/error.h"
#include "config/options.h"

namespace megalith {
namespace {

std::string explain_option(const Option& option) {
  std::string text = fmt::format("{}\n    {}\n    takes    {}\n    default  {}\n", option.name, option.about,
                                 option.expected(), option.default_text);
  if (!option.applies_when.empty()) text += fmt::format("    only if  {}\n", option.applies_when);
  if (option.shorthand) text += fmt::format("    short    {}: VALUE\n", option.section());
  return text + fmt::format("    resume   {}\n", option.may_change ? "may change" : "must stay the same");
}

}  // namespace

std::string explain(std::string_view key) {
  std::string text;
  for (const Option& option : options()) {
    bool inside =
        option.name.starts_with(key) && option.name.size() > key.size() && option.name[key.size()] == '.';
    if (key.empty() || option.name == key || inside)
      text += (text.empty() ? "" : "\n") + explain_option(option);
  }
  if (text.empty()) throw unknown_key(key, "");
  return text;
}

}  // namespace megalith
