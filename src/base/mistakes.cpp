#include "base/mistakes.h"

#include <algorithm>

namespace megalith {
namespace {

constexpr size_t kMostListed = 20;  // lines; more do not fit on a screen

std::string list(const std::vector<UserError>& mistakes) {
  std::string text = fmt::format("{} mistakes:", mistakes.size());
  for (size_t i = 0; i < std::min(mistakes.size(), kMostListed); i++) text += fmt::format("\n  {}", mistakes[i].what());
  if (mistakes.size() > kMostListed) text += fmt::format("\n  and {} more", mistakes.size() - kMostListed);
  return text;
}

// True if the expected value depends on the key of an earlier mistake: the mistake may be a consequence of that one.
bool follows(const UserError& mistake, const std::vector<UserError>& earlier) {
  return std::ranges::any_of(earlier, [&](const UserError& other) {
    const std::string& key = other.parts.key;
    return key.find('.') != std::string::npos && mistake.parts.expected.find(key) != std::string::npos;
  });
}

}  // namespace

SeveralMistakes::SeveralMistakes(std::vector<UserError> mistakes)
    : UserError({"", "", "", "", list(mistakes)}), all(std::move(mistakes)) {}

void Mistakes::throw_any() const {
  std::vector<UserError> own;
  for (const UserError& mistake : all_)
    if (!follows(mistake, own)) own.push_back(mistake);
  if (own.size() == 1) throw own.front();
  if (!own.empty()) throw SeveralMistakes(std::move(own));
}

}  // namespace megalith
