#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/regex.h"

#include <pcre2.h>

#include "base/error.h"

namespace megalith {
namespace {

constexpr std::string_view kSpace =
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{"
    "3000}";

std::string translate(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); i++) {
    char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      char next = pattern[++i];
      if (next == 's')
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

// What a thread needs to match: grown on demand, reused by every pattern.
struct Scratch {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(32 << 10, 8 << 20, nullptr);
  Scratch() {
    if (!data || !context || !stack) throw Fault("no memory for a pattern's workspace");
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
  if (!code) throw UserError({where, "Regex", "a regular expression", pattern_, message_of(error)});
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // where there is no JIT, matching works without
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
