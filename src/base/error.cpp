#include "base/error.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <filesystem>

namespace megalith {
namespace {

std::string message(const UserError::Parts& p) {
  std::string text;
  auto lead = [&](const std::string& part) {
    if (!part.empty()) text += shortened(part) + ": ";
  };
  lead(p.where);
  lead(p.key);
  if (!p.expected.empty()) text += "expected " + p.expected;
  if (!p.got.empty()) text += (p.expected.empty() ? "got " : ", got ") + shortened(p.got);
  if (!p.hint.empty()) text += (p.expected.empty() && p.got.empty() ? "" : "; ") + p.hint;
  return with_short_words(text);
}

constexpr size_t kLongest = 300, kHead = 160, kTail = 80;  // bytes: longer texts show only their begin and end

bool inside_character(char c) { return (static_cast<uint8_t>(c) & 0xC0) == 0x80; }

}  // namespace

std::string shortened(const std::string& text) {
  if (text.size() <= kLongest) return text;
  size_t head = kHead, tail = text.size() - kTail;
  while (head > 0 && inside_character(text[head])) head--;
  while (tail < text.size() && inside_character(text[tail])) tail++;
  return fmt::format("{}...{} ({} bytes)", text.substr(0, head), text.substr(tail), text.size());
}

std::string with_short_words(const std::string& text) {
  std::string result;
  const auto is_space = [](unsigned char c) { return std::isspace(c) != 0; };
  for (auto at = text.begin(); at != text.end();) {
    const auto end = std::find_if(at, text.end(), is_space), next = std::find_if_not(end, text.end(), is_space);
    result += shortened(std::string(at, end));
    result.append(end, next);
    at = next;
  }
  return result;
}

bool is_machine_fault(int error) {
  constexpr int kFaults[] = {ENOSPC, EIO, EDQUOT, EFBIG, ENOMEM, EMFILE, ENFILE, EAGAIN};
  return std::ranges::find(kFaults, error) != std::end(kFaults);
}

UserError::UserError(Parts p) : std::runtime_error(message(p)), parts(std::move(p)) {}

void fail_assert(const char* file, int line, const char* condition, const std::string& text) {
  throw Bug(fmt::format("{}:{}: {} does not hold{}{}", std::filesystem::path(file).filename().string(), line,
                        condition, text.empty() ? "" : ": ", text));
}

}  // namespace megalith
