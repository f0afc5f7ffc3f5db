#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/regex.h"

#include <pcre2.h>

#include <utility>

#include "base/error.h"

namespace megalith {
namespace {

constexpr std::string_view kSpace =
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{"
    "3000}";

// Letters, numbers and marks of Unicode 15 and 16, as matched by `tokenizers` 0.23. Debian 12's PCRE2 has the tables of
// Unicode 14 and does not know them. They do no harm in a newer PCRE2.
constexpr std::pair<std::string_view, std::string_view> kYounger[] = {
    {"L",
     "1C89-1C8A A7CB-A7CD A7DA-A7DC 105C0-105F3 10D4A-10D65 10D6F-10D85 10EC2-10EC4 "
     "1123F-11240 11380-11389 1138B 1138E 11390-113B5 113B7 113D1 113D3 11BC0-11BE0 11F02 "
     "11F04-11F10 11F12-11F33 1342F 13441-13446 13460-143FA 16100-1611D 16D40-16D6C 18CFF "
     "1B132 1B155 1DF25-1DF2A 1E030-1E06D 1E4D0-1E4EB 1E5D0-1E5ED 1E5F0 2B739 2EBF0-2EE5D "
     "31350-323AF"},
    {"N",
     "10D40-10D49 116D0-116E3 11BF0-11BF9 11F50-11F59 16130-16139 16D70-16D79 1CCF0-1CCF9 "
     "1D2C0-1D2D3 1E4F0-1E4F9 1E5F1-1E5FA"},
    {"M",
     "897 CF3 ECE 10D69-10D6D 10EFC-10EFF 11241 113B8-113C0 113C2 113C5 113C7-113CA "
     "113CC-113D0 113D2 113E1-113E2 11F00-11F01 11F03 11F34-11F3A 11F3E-11F42 11F5A 13440 "
     "13447-13455 1611E-1612F 1E08F 1E4EC-1E4EF 1E5EE-1E5EF"},
    {"Lu", "1C89 A7CB-A7CC A7DA A7DC 10D50-10D65"},
    {"Ll", "1C8A A7CD A7DB 10D70-10D85 1DF25-1DF2A"},
    {"Lm", "10D4E 10D6F 16D40-16D42 16D6B-16D6C 1E030-1E06D 1E4EB"},
    {"Lo",
     "105C0-105F3 10D4A-10D4D 10D4F 10EC2-10EC4 1123F-11240 11380-11389 1138B 1138E "
     "11390-113B5 113B7 113D1 113D3 11BC0-11BE0 11F02 11F04-11F10 11F12-11F33 1342F "
     "13441-13446 13460-143FA 16100-1611D 16D43-16D6A 18CFF 1B132 1B155 1E4D0-1E4EA "
     "1E5D0-1E5ED 1E5F0 2B739 2EBF0-2EE5D 31350-323AF"},
};

// Returns a property (the name in \\p{name}) in the syntax of a character class, without brackets.
std::string property_class(std::string_view name) {
  std::string out = fmt::format("\\p{{{}}}", name);
  for (const auto& [property, ranges] : kYounger) {
    if (property != name) continue;
    bool open = false;
    for (char c : ranges) {
      if (c == ' ' || c == '-') {
        out += c == '-' ? "}-" : "}";
        open = false;
        continue;
      }
      if (!std::exchange(open, true)) out += "\\x{";
      out += c;
    }
    out += '}';
  }
  return out;
}

std::string translate(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); i++) {
    char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      char next = pattern[++i];
      size_t close = next == 'p' && i + 1 < pattern.size() && pattern[i + 1] == '{' ? pattern.find('}', i)
                                                                                    : std::string_view::npos;
      if (close != std::string_view::npos) {
        std::string property = property_class(pattern.substr(i + 2, close - i - 2));
        out += in_class ? property : fmt::format("[{}]", property);
        i = close;
      } else if (next == 's')
        out += in_class ? std::string(kSpace) : fmt::format("[{}]", kSpace);
      else if (next == 'S' && !in_class)
        out += fmt::format("[^{}]", kSpace);
      else
        out += {c, next};
      continue;
    }
    if (c == '[') in_class = true;
    if (c == ']') in_class = false;
    out += c;
  }
  return out;
}

// Memory that a thread needs for matching. Grows on demand; all patterns share it.
struct Scratch {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(32 << 10, 8 << 20, nullptr);
  Scratch() {
    if (!data || !context || !stack) throw Fault("out of memory while matching a pattern");
    pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~Scratch() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
  }
};

std::string message_of(int error) {
  PCRE2_UCHAR buffer[256];
  pcre2_get_error_message(error, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

}  // namespace

Regex::Regex(std::string_view pattern, const std::string& where) : pattern_(pattern) {
  std::string translated = translate(pattern);
  int error = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF, &error, &at, nullptr);
  if (!code) throw UserError({where, "Regex", "a valid regular expression", pattern_, message_of(error)});
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // if there is no JIT compiler, PCRE2 interprets the pattern
  code_ = code;
}

Regex::~Regex() {
  pcre2_code_free(static_cast<pcre2_code*>(code_));
}

std::optional<Regex::Match> Regex::find(std::string_view text, size_t from) const {
  thread_local Scratch scratch;
  int count = pcre2_match(static_cast<const pcre2_code*>(code_), reinterpret_cast<PCRE2_SPTR>(text.data()),
                          text.size(), from, 0, scratch.data, scratch.context);
  if (count == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (count < 0) throw Fault(fmt::format("matching {} failed: {}", pattern_, message_of(count)));
  const PCRE2_SIZE* span = pcre2_get_ovector_pointer(scratch.data);
  return Match{span[0], span[1]};
}

std::string Regex::quote(std::string_view literal) {
  std::string out;
  for (char c : literal) {
    if (std::string_view("\\^$.[]|()?*+{}-#/").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace megalith
