#include "text/normalizer.h"

#include <utf8proc.h>

#include <cstdlib>
#include <vector>

#include "text/bert_chars.h"
#include "text/char_class.h"
#include "text/regex.h"
#include "text/utf8.h"

namespace megalith {
namespace {

bool all_ascii(std::string_view text) {
  for (char c : text)
    if (static_cast<unsigned char>(c) >= 0x80) return false;
  return true;
}

// Calls fn(code point, bytes as written) for each character; bytes that are not UTF-8 come with
// CodePoint::kInvalid.
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

// Applies a Unicode form to the stretches that are UTF-8 and keeps the other bytes.
void apply_unicode_form(std::string& text, int options) {
  if (all_ascii(text)) return;
  std::string out, run;
  auto flush = [&] {
    if (!run.empty()) out += unicode_form(run, options);
    run.clear();
  };
  for_each_char(text, [&](uint32_t c, std::string_view bytes) {
    if (c != CodePoint::kInvalid) {
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
    } else if (c == 0x130) {  // the only letter whose lower case is two: i and a dot above
      out += "i\xCC\x87";
    } else {
      append_utf8(out, static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
    }
  });
  text = std::move(out);
}

// Leaves out the characters for which `drop` holds.
template <class Drop>
void remove_chars(std::string& text, Drop drop) {
  if (all_ascii(text)) return;
  std::string out;
  for_each_char(text, [&](uint32_t c, std::string_view bytes) {
    if (c == CodePoint::kInvalid || !drop(c)) out += bytes;
  });
  text = std::move(out);
}

struct Sequence : Normalizer {
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

struct Replace : Normalizer {
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

struct Bert : Normalizer {
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
    auto sequence = std::make_unique<Sequence>();
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
    auto step = std::make_unique<Replace>();
    step->pattern = component.read_pattern();
    step->content = component.need<std::string>("content");
    return step;
  }
  if (type == "BertNormalizer") {
    auto step = std::make_unique<Bert>();
    step->clean = component.get("clean_text", true);
    step->chinese = component.get("handle_chinese_chars", true);
    step->lower = component.get("lowercase", true);
    step->strip = component.get("strip_accents", step->lower);
    return step;
  }
  if (type == "Lowercase") return std::make_unique<Lowercase>();
  if (type == "StripAccents") return std::make_unique<StripAccents>();
  if (type == "NFC") return unicode_form_step(UTF8PROC_COMPOSE);
  if (type == "NFD") return unicode_form_step(UTF8PROC_DECOMPOSE);
  if (type == "NFKC") return unicode_form_step(UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
  if (type == "NFKD") return unicode_form_step(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
  component.unknown(
      "Sequence, Prepend, Replace, BertNormalizer, Lowercase, StripAccents, NFC, NFD, NFKC, NFKD");
}

}  // namespace megalith
