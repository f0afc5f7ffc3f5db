#include "text/normalizer.h"

#include <utf8proc.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

#include "text/base64.h"
#include "text/bert_chars.h"
#include "text/char_class.h"
#include "text/charsmap.h"
#include "text/component.h"
#include "text/regex.h"
#include "text/utf8.h"
#include "text/young_chars.h"

namespace megalith {
namespace {

bool all_ascii(std::string_view text) {
  for (char c : text)
    if (static_cast<unsigned char>(c) >= 0x80) return false;
  return true;
}

// Calls fn(code point, bytes as written) for each character. The code point is CodePoint::kInvalid for a byte that is
// not UTF-8.
template <class Fn>
void for_each_char(std::string_view text, Fn fn) {
  for (size_t at = 0; at < text.size();) {
    CodePoint point = code_point_at(text, at);
    fn(point.value, text.substr(at, point.bytes));
    at += point.bytes;
  }
}

std::string unicode_form(std::string_view valid, int options) {
  utf8proc_uint8_t* mapped = nullptr;
  auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(valid.data()),
                           static_cast<utf8proc_ssize_t>(valid.size()), &mapped,
                           static_cast<utf8proc_option_t>(options));
  if (size < 0) throw Fault(fmt::format("Unicode normalisation failed: {}", utf8proc_errmsg(size)));
  std::string out(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
  std::free(mapped);
  return out;
}

// Applies a Unicode normalization form. Keeps bytes that are not UTF-8, and characters that the reference does not
// know.
void apply_unicode_form(std::string& text, int options) {
  if (all_ascii(text)) return;
  std::string out, run;
  auto flush = [&] {
    if (!run.empty()) out += unicode_form(run, options);
    run.clear();
  };
  for_each_char(text, [&](uint32_t c, std::string_view bytes) {
    if (c != CodePoint::kInvalid && !too_young_to_normalize(c)) {
      run += bytes;
    } else {
      flush();
      out += bytes;
    }
  });
  flush();
  text = std::move(out);
}

void lowercase(std::string& text) {
  std::string out;
  out.reserve(text.size());
  for_each_char(text, [&](uint32_t c, std::string_view bytes) {
    if (c < 0x80) {
      out += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    } else if (c == CodePoint::kInvalid) {
      out += bytes;
    } else if (c == 0x130) {  // the only letter whose lower case is two characters: i and a dot above
      out += "i\xCC\x87";
    } else {
      append_utf8(out, static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
    }
  });
  text = std::move(out);
}

// Removes the characters for which `drop` returns true.
template <class Drop>
void remove_chars(std::string& text, Drop drop) {
  if (all_ascii(text)) return;
  std::string out;
  for_each_char(text, [&](uint32_t c, std::string_view bytes) {
    if (c == CodePoint::kInvalid || !drop(c)) out += bytes;
  });
  text = std::move(out);
}

struct SequenceNormalizer : Normalizer {
  std::vector<std::unique_ptr<Normalizer>> steps;
  void apply(std::string& text, bool begins) const override {
    for (const auto& step : steps) step->apply(text, begins);
  }
};

struct Prepend : Normalizer {
  std::string prefix;
  void apply(std::string& text, bool begins) const override {
    if (begins && !text.empty()) text.insert(0, prefix);
  }
};

struct ReplaceNormalizer : Normalizer {
  std::unique_ptr<Regex> pattern;
  std::string content;
  void apply(std::string& text, bool) const override {
    std::string out;
    size_t done = 0;
    while (auto match = pattern->find(text, done)) {
      if (match->end == match->begin) break;  // an empty match replaces nothing
      out.append(text, done, match->begin - done);
      out += content;
      done = match->end;
    }
    if (done == 0) return;
    out.append(text, done);
    text = std::move(out);
  }
};

struct UnicodeForm : Normalizer {
  int options = 0;
  void apply(std::string& text, bool) const override { apply_unicode_form(text, options); }
};

struct Lowercase : Normalizer {
  void apply(std::string& text, bool) const override { lowercase(text); }
};

struct StripAccents : Normalizer {
  void apply(std::string& text, bool) const override {
    remove_chars(text, [](uint32_t c) {
      auto kind = CharClasses::get().kind(c);
      return kind == CharClasses::mark || kind == CharClasses::other_mark;
    });
  }
};

struct BertNormalizer : Normalizer {
  bool clean = true, chinese = true, strip = true, lower = true;
  void apply(std::string& text, bool) const override {
    std::string out;
    out.reserve(text.size());
    for_each_char(text, [&](uint32_t c, std::string_view bytes) {
      BertKind kind = bert_kind(c);
      if (clean && kind == BertKind::dropped) return;
      if (clean && kind == BertKind::space)
        out += ' ';
      else if (chinese && bert_is_chinese(c))
        (out += ' ') += std::string(bytes) + ' ';
      else
        out += bytes;
    });
    text = std::move(out);
    if (strip) {
      apply_unicode_form(text, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
      remove_chars(text, [](uint32_t c) { return bert_kind(c) == BertKind::mark; });
    }
    if (lower) lowercase(text);
  }
};

// Applies SentencePiece's rewriting rules as Hugging Face does. A rule that matches the beginning of a short grapheme
// replaces the whole grapheme. Otherwise the rules are applied to each character.
struct Precompiled : Normalizer {
  static constexpr size_t kLongGrapheme = 6;  // bytes; graphemes of this length or more are rewritten character by character
  Charsmap rules;
  Precompiled(std::string_view table, const std::string& where) : rules(table, where) {}

  void apply(std::string& text, bool) const override {
    std::string out;
    out.reserve(text.size());
    for (size_t at = 0; at < text.size();) {
      size_t end = grapheme_end(text, at);
      std::string_view grapheme = std::string_view(text).substr(at, end - at);
      auto rule = grapheme.size() < kLongGrapheme ? rules.shortest(grapheme) : std::nullopt;
      if (rule)
        out += rule->result;
      else
        for_each_char(grapheme, [&](uint32_t, std::string_view character) {
          auto own = rules.shortest(character);
          out += own ? own->result : character;
        });
      at = end;
    }
    text = std::move(out);
  }

  static size_t grapheme_end(std::string_view text, size_t begin) {
    CodePoint before = code_point_at(text, begin);
    size_t end = begin + before.bytes;
    utf8proc_int32_t state = 0;
    while (end < text.size() && before.valid()) {
      // A grapheme always ends between two printable ASCII characters, and needs no state.
      auto byte = static_cast<unsigned char>(text[end]);
      if (before.value < 0x80 && byte < 0x80 && !(before.value == '\r' && byte == '\n')) break;
      CodePoint next = code_point_at(text, end);
      if (!next.valid() ||
          utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(before.value),
                                           static_cast<utf8proc_int32_t>(next.value), &state))
        break;
      end += next.bytes;
      before = next;
    }
    return end;
  }
};

// Removes spaces at both ends of a text.
struct StripNormalizer : Normalizer {
  bool left = true, right = true;
  void apply(std::string& text, bool begins) const override {
    auto is_space = [&](size_t at) {
      return CharClasses::get().kind(code_point_at(text, at).value) == CharClasses::space;
    };
    size_t begin = 0, end = text.size();
    while (right && end > 0 && is_space(previous_code_point(text, end))) end = previous_code_point(text, end);
    while (left && begins && begin < end && is_space(begin)) begin += code_point_at(text, begin).bytes;
    text.resize(end);
    text.erase(0, begin);
  }
};

// Removes control characters, and replaces every kind of space by ' '.
struct Nmt : Normalizer {
  void apply(std::string& text, bool) const override {
    std::string out;
    for_each_char(text, [&](uint32_t c, std::string_view bytes) {
      bool dropped = (c >= 0x1 && c <= 0x8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F ||
                     c == 0x8F || c == 0x9F;
      bool space = c == 0x9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
                   (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF ||
                   c == 0xFFFD;
      if (space)
        out += ' ';
      else if (!dropped)
        out += bytes;
    });
    text = std::move(out);
  }
};

std::unique_ptr<Normalizer> unicode_form_step(int options) {
  auto step = std::make_unique<UnicodeForm>();
  step->options = UTF8PROC_STABLE | options;
  return step;
}

}  // namespace

std::unique_ptr<Normalizer> read_normalizer(const Component& component) {
  if (component.json.is_null()) return nullptr;
  std::string type = component.type();
  if (type == "Sequence") {
    auto sequence = std::make_unique<SequenceNormalizer>();
    size_t index = 0;
    for (const auto& part : component.array("normalizers"))
      if (auto step = read_normalizer(component.child(part, index++)))
        sequence->steps.push_back(std::move(step));
    return sequence;
  }
  if (type == "Prepend") {
    auto step = std::make_unique<Prepend>();
    step->prefix = component.need<std::string>("prepend");
    return step;
  }
  if (type == "Replace") {
    auto step = std::make_unique<ReplaceNormalizer>();
    step->pattern = component.read_pattern();
    step->content = component.need<std::string>("content");
    return step;
  }
  if (type == "BertNormalizer") {
    auto step = std::make_unique<BertNormalizer>();
    step->clean = component.get("clean_text", true);
    step->chinese = component.get("handle_chinese_chars", true);
    step->lower = component.get("lowercase", true);
    step->strip = component.get("strip_accents", step->lower);
    return step;
  }
  if (type == "Precompiled") {
    auto table = from_base64(component.need<std::string>("precompiled_charsmap"));
    if (!table) component.bad("a precompiled_charsmap in base 64", "something else");
    return std::make_unique<Precompiled>(*table, component.where + ": " + component.name);
  }
  if (type == "Strip") {
    auto step = std::make_unique<StripNormalizer>();
    step->left = component.get("strip_left", true);
    step->right = component.get("strip_right", true);
    return step;
  }
  if (type == "Nmt") return std::make_unique<Nmt>();
  if (type == "Lowercase") return std::make_unique<Lowercase>();
  if (type == "StripAccents") return std::make_unique<StripAccents>();
  if (type == "NFC") return unicode_form_step(UTF8PROC_COMPOSE);
  if (type == "NFD") return unicode_form_step(UTF8PROC_DECOMPOSE);
  if (type == "NFKC") return unicode_form_step(UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
  if (type == "NFKD") return unicode_form_step(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
  component.unknown({"Sequence", "Prepend", "Replace", "BertNormalizer", "Precompiled", "Strip", "Nmt", "Lowercase",
                     "StripAccents", "NFC", "NFD", "NFKC", "NFKD"});
}

}  // namespace megalith
