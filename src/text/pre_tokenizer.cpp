#include "text/pre_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "text/bert_chars.h"
#include "text/char_class.h"
#include "text/component.h"
#include "text/gpt2_split.h"
#include "text/regex.h"
#include "text/utf8.h"

namespace megalith {
namespace {

using Sink = PreTokenizer::Sink;
using Place = PreTokenizer::Place;

// Each step passes its words to the next step. Only the first word of a text has the place of that text.
struct SequencePreTokenizer : PreTokenizer {
  std::vector<std::unique_ptr<PreTokenizer>> steps;

  struct Next final : Sink {
    const SequencePreTokenizer& sequence;
    size_t step;
    Place place;
    Sink& last;
    Next(const SequencePreTokenizer& s, size_t i, Place p, Sink& l) : sequence(s), step(i), place(p), last(l) {}
    void word(std::string_view text) override {
      sequence.run(step, text, place, last);
      place = {.begins = false, .continues = false};
    }
  };
  void run(size_t step, std::string_view text, Place place, Sink& sink) const {
    if (step == steps.size()) return sink.word(text);
    Next next(*this, step + 1, place, sink);
    steps[step]->split(text, place, next);
  }
  void split(std::string_view text, Place place, Sink& sink) const override { run(0, text, place, sink); }
};

// Splits into GPT-2's words without PCRE2. Used if the pattern of the file is GPT-2's.
struct Gpt2Split : PreTokenizer {
  Gpt2Splitter splitter;

  void split(std::string_view text, Place, Sink& sink) const override {
    for (size_t at = 0; at < text.size();) {
      size_t end = splitter.word_end(text, at);
      sink.word(text.substr(at, end - at));
      at = end;
    }
  }
};

// Splits into GPT-2's words, and puts a space in front of the text if `prefix_space` is set. Words stay raw bytes: the
// model converts its vocabulary from the byte alphabet to bytes.
struct ByteLevelPreTokenizer : PreTokenizer {
  bool prefix_space = false, use_regex = true;
  Gpt2Split words;

  void split(std::string_view text, Place place, Sink& sink) const override {
    std::string prefixed;
    if (prefix_space && !place.continues && !text.starts_with(' ')) {
      prefixed = " ";
      prefixed += text;
      text = prefixed;
    }
    if (use_regex)
      words.split(text, place, sink);
    else
      sink.word(text);
  }
};

// Cuts a text into the matches of a pattern and the stretches between them. Then joins neighbours as `behavior` says.
struct Split : PreTokenizer {
  enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };
  std::unique_ptr<Regex> pattern;
  Behavior behavior = Behavior::isolated;
  bool invert = false;  // the matches are words, and the text between two matches is a delimiter

  // Calls part(begin, end, delimiter) for each match and each stretch between matches, in order. Parts are not empty.
  template <class Part>
  void for_each_part(std::string_view text, Part part) const {
    size_t done = 0;
    for (size_t from = 0; from < text.size();) {
      auto match = pattern->find(text, from);
      if (!match || match->begin == text.size()) break;
      if (match->begin == match->end) {  // empty match: search again after the next character
        from = match->begin + code_point_at(text, match->begin).bytes;
        continue;
      }
      if (done < match->begin) part(done, match->begin, invert);
      part(match->begin, match->end, !invert);
      done = from = match->end;
    }
    if (done < text.size()) part(done, text.size(), invert);
  }

  void split(std::string_view text, Place, Sink& sink) const override {
    size_t open = 0, open_end = 0;  // part of the text that the next piece may still join; may be empty
    bool open_delimiter = false;
    auto flush = [&] {
      if (open < open_end) sink.word(text.substr(open, open_end - open));
      open = open_end = 0;
    };
    for_each_part(text, [&](size_t begin, size_t end, bool delimiter) {
      if (open < open_end && joins(open_delimiter, delimiter)) {
        open_end = end;
        open_delimiter = delimiter;
        return;
      }
      flush();
      if (delimiter && behavior == Behavior::removed) return;
      open = begin;
      open_end = end;
      open_delimiter = delimiter;
    });
    flush();
  }

  bool joins(bool before, bool delimiter) const {
    switch (behavior) {
      case Behavior::merged_with_previous:
        return delimiter && !before;
      case Behavior::merged_with_next:
        return !delimiter && before;
      case Behavior::contiguous:
        return delimiter == before;
      default:
        return false;
    }
  }
};

// Replaces each space by a visible mark, and cuts the text into words that begin with the mark.
struct MetaspacePreTokenizer : PreTokenizer {
  enum class Prepend { always, first, never };
  std::string mark;
  Prepend prepend = Prepend::always;
  bool cut = true;

  void split(std::string_view text, Place place, Sink& sink) const override {
    std::string marked;
    marked.reserve(text.size() + text.size() / 4);
    for (char c : text)
      if (c == ' ')
        marked += mark;
      else
        marked += c;
    bool wanted = prepend == Prepend::always ? !place.continues : prepend == Prepend::first && place.begins;
    if (wanted && !marked.starts_with(mark)) marked.insert(0, mark);
    if (!cut) return sink.word(marked);
    for (size_t at = 0; at < marked.size();) {
      size_t end =
          std::min(marked.find(mark, marked.compare(at, mark.size(), mark) == 0 ? at + mark.size() : at),
                   marked.size());
      sink.word(std::string_view(marked).substr(at, end - at));
      at = end;
    }
  }
};

// Cuts at spaces. Each punctuation character is a word.
struct BertPreTokenizer : PreTokenizer {
  void split(std::string_view text, Place, Sink& sink) const override {
    size_t word = 0;
    auto flush = [&](size_t end) {
      if (word < end) sink.word(text.substr(word, end - word));
    };
    for (size_t at = 0; at < text.size();) {
      CodePoint point = code_point_at(text, at);
      BertKind kind = bert_kind(point.value);
      bool alone = kind == BertKind::punctuation;
      if (alone || CharClasses::get().is_space(point.value)) {
        flush(at);
        if (alone) sink.word(text.substr(at, point.bytes));
        word = at + point.bytes;
      }
      at += point.bytes;
    }
    flush(text.size());
  }
};

std::unique_ptr<PreTokenizer> split_by(std::unique_ptr<Regex> pattern, Split::Behavior behavior,
                                       bool invert) {
  auto step = std::make_unique<Split>();
  step->pattern = std::move(pattern);
  step->behavior = behavior;
  step->invert = invert;
  return step;
}

std::unique_ptr<PreTokenizer> read_split(const Component& component) {
  static constexpr std::pair<const char*, Split::Behavior> kBehaviors[] = {
      {"Removed", Split::Behavior::removed},
      {"Isolated", Split::Behavior::isolated},
      {"MergedWithPrevious", Split::Behavior::merged_with_previous},
      {"MergedWithNext", Split::Behavior::merged_with_next},
      {"Contiguous", Split::Behavior::contiguous}};
  auto behavior = component.need<std::string>("behavior");
  bool invert = component.get("invert", false);
  const auto& pattern = component.json.at("pattern");
  if (behavior == "Isolated" && !invert && pattern.is_object() && pattern.value("Regex", "") == kGpt2Pattern)
    return std::make_unique<Gpt2Split>();
  for (const auto& [name, value] : kBehaviors)
    if (behavior == name) return split_by(component.read_pattern(), value, invert);
  component.bad("behavior Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous", behavior);
}

std::unique_ptr<PreTokenizer> read_metaspace(const Component& component, PreTokenizerTraits& traits) {
  auto step = std::make_unique<MetaspacePreTokenizer>();
  step->mark = component.get<std::string>("replacement", "\u2581");
  if (step->mark.empty()) component.bad("a replacement", "an empty one");
  // Older files have add_prefix_space; newer files have prepend_scheme.
  std::string scheme = component.get<std::string>(
      "prepend_scheme", component.get("add_prefix_space", true) ? "always" : "never");
  if (scheme == "always")
    step->prepend = MetaspacePreTokenizer::Prepend::always;
  else if (scheme == "first")
    step->prepend = MetaspacePreTokenizer::Prepend::first;
  else if (scheme == "never")
    step->prepend = MetaspacePreTokenizer::Prepend::never;
  else
    component.bad("prepend_scheme always, first or never", scheme);
  step->cut = component.get("split", true);
  traits.word_marker = step->mark;
  return step;
}

}  // namespace

std::unique_ptr<PreTokenizer> read_pre_tokenizer(const Component& component, PreTokenizerTraits& traits) {
  if (component.json.is_null()) return nullptr;
  std::string type = component.type();
  if (type == "Sequence") {
    auto sequence = std::make_unique<SequencePreTokenizer>();
    size_t index = 0;
    for (const auto& part : component.array("pretokenizers")) {
      Component child = component.child(part, index++);
      if (traits.byte_level)
        child.bad("ByteLevel at the end", child.type() + " after it", "a step after ByteLevel is not supported");
      if (auto step = read_pre_tokenizer(child, traits)) sequence->steps.push_back(std::move(step));
    }
    return sequence;
  }
  if (type == "ByteLevel") {
    auto step = std::make_unique<ByteLevelPreTokenizer>();
    step->prefix_space = component.get("add_prefix_space", true);
    step->use_regex = component.get("use_regex", true);
    traits.byte_level = true;
    return step;
  }
  if (type == "Split") return read_split(component);
  if (type == "Metaspace") return read_metaspace(component, traits);
  if (type == "BertPreTokenizer") return std::make_unique<BertPreTokenizer>();
  if (type == "WhitespaceSplit")
    return split_by(std::make_unique<Regex>("\\s", component.where), Split::Behavior::removed, false);
  if (type == "Digits") {
    bool each = component.get("individual_digits", false);
    return split_by(std::make_unique<Regex>(each ? "\\p{N}" : "\\p{N}+", component.where),
                    Split::Behavior::isolated, false);
  }
  component.unknown(
      {"Sequence", "ByteLevel", "Split", "Metaspace", "WhitespaceSplit", "BertPreTokenizer", "Digits"});
}

}  // namespace megalith
