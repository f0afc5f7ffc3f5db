#include "base/error.h"

#include <filesystem>

namespace megalith {
namespace {

std::string message(const UserError::Parts& p) {
  std::string text;
  auto lead = [&](const std::string& part) {
    if (!part.empty()) text += part + ": ";
  };
  lead(p.where);
  lead(p.key);
  if (!p.expected.empty()) text += "expected " + p.expected;
  if (!p.got.empty()) text += (p.expected.empty() ? "got " : ", got ") + p.got;
  if (!p.hint.empty()) text += (p.expected.empty() && p.got.empty() ? "" : "; ") + p.hint;
  return text;
}

}  // namespace

UserError::UserError(Parts p) : std::runtime_error(message(p)), parts(std::move(p)) {}

void fail_assert(const char* file, int line, const char* condition, const std::string& text) {
  throw Bug(fmt::format("{}:{}: {} does not hold{}{}", std::filesystem::path(file).filename().string(), line,
                        condition, text.empty() ? "" : ": ", text));
}

}  // namespace megalith
