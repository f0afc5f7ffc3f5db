#include "text/decoder.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json.h"
#include "text/byte_alphabet.h"
#include "text/component.h"
#include "text/regex.h"

namespace megalith {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

struct SequenceDecoder : Decoder {
  std::vector<std::unique_ptr<Decoder>> steps;
  void apply(std::vector<std::string>& pieces) const override {
    for (const auto& step : steps) step->apply(pieces);
  }
};

struct ByteLevelDecoder : Decoder {
  void apply(std::vector<std::string>& pieces) const override {
    for (auto& piece : pieces)
      if (auto bytes = from_byte_alphabet(piece))
        piece = *bytes;  // other pieces, such as added tokens, are already text
  }
};

// Turns "<0x0A>" into the byte 10.
struct ByteFallback : Decoder {
  void apply(std::vector<std::string>& pieces) const override {
    for (auto& piece : pieces) {
      if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') continue;
      unsigned byte = 0;
      auto [end, error] = std::from_chars(piece.data() + 3, piece.data() + 5, byte, 16);
      if (error == std::errc() && end == piece.data() + 5) piece.assign(1, static_cast<char>(byte));
    }
  }
};

struct Fuse : Decoder {
  void apply(std::vector<std::string>& pieces) const override {
    std::string all;
    for (const auto& piece : pieces) all += piece;
    pieces.assign(1, std::move(all));
  }
};

struct ReplaceDecoder : Decoder {
  std::string from, to;
  void apply(std::vector<std::string>& pieces) const override {
    for (auto& piece : pieces) replace_all(piece, from, to);
  }
};

struct StripDecoder : Decoder {
  std::string content;
  int64_t start = 0, stop = 0;  // maximum number of copies of `content` to remove at each end
  void apply(std::vector<std::string>& pieces) const override {
    for (auto& piece : pieces) {
      for (int64_t i = 0; i < start && piece.starts_with(content); i++) piece.erase(0, content.size());
      for (int64_t i = 0; i < stop && piece.ends_with(content); i++)
        piece.resize(piece.size() - content.size());
    }
  }
};

struct MetaspaceDecoder : Decoder {
  std::string mark;
  bool strip_first = true;
  void apply(std::vector<std::string>& pieces) const override {
    // Removes all marks of the first token, as the reference does, not only the mark that was put in front.
    for (size_t i = 0; i < pieces.size(); i++) replace_all(pieces[i], mark, i == 0 && strip_first ? "" : " ");
  }
};

struct WordPiece : Decoder {
  std::string prefix;
  bool cleanup = true;
  void apply(std::vector<std::string>& pieces) const override {
    for (size_t i = 0; i < pieces.size(); i++) {
      if (i > 0) {
        if (pieces[i].starts_with(prefix))
          pieces[i].erase(0, prefix.size());
        else
          pieces[i].insert(0, " ");
      }
      if (cleanup) clean(pieces[i]);
    }
  }
  // English spacing: no space before punctuation and contractions.
  static void clean(std::string& text) {
    static constexpr std::pair<const char*, const char*> kRules[] = {
        {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
        {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (const auto& [from, to] : kRules) replace_all(text, from, to);
  }
};

std::unique_ptr<Decoder> read_replace(const Component& component) {
  auto step = std::make_unique<ReplaceDecoder>();
  const auto& pattern = component.json.at("pattern");
  if (!pattern.is_object() || !pattern.contains("String"))
    component.bad("a pattern of kind String", print_json(pattern), "other patterns are not supported in decoders");
  step->from = pattern.at("String").get<std::string>();
  if (step->from.empty()) component.bad("a pattern that is not empty", "an empty one");
  step->to = component.need<std::string>("content");
  return step;
}

std::unique_ptr<Decoder> read_strip(const Component& component) {
  auto step = std::make_unique<StripDecoder>();
  step->content = component.need<std::string>("content");
  if (step->content.empty()) component.bad("a character to strip", "an empty text");
  step->start = component.get<int64_t>("start", 0);
  step->stop = component.get<int64_t>("stop", 0);
  return step;
}

}  // namespace

std::unique_ptr<Decoder> read_decoder(const Component& component) {
  if (component.json.is_null()) return nullptr;
  std::string type = component.type();
  if (type == "Sequence") {
    auto sequence = std::make_unique<SequenceDecoder>();
    size_t index = 0;
    for (const auto& part : component.array("decoders"))
      if (auto step = read_decoder(component.child(part, index++)))
        sequence->steps.push_back(std::move(step));
    return sequence;
  }
  if (type == "ByteLevel") return std::make_unique<ByteLevelDecoder>();
  if (type == "ByteFallback") return std::make_unique<ByteFallback>();
  if (type == "Fuse") return std::make_unique<Fuse>();
  if (type == "Replace") return read_replace(component);
  if (type == "Strip") return read_strip(component);
  if (type == "Metaspace") {
    auto step = std::make_unique<MetaspaceDecoder>();
    step->mark = component.get<std::string>("replacement", "\u2581");
    if (step->mark.empty()) component.bad("a replacement", "an empty one");
    step->strip_first =
        component.get<std::string>("prepend_scheme",
                                   component.get("add_prefix_space", true) ? "always" : "never") != "never";
    return step;
  }
  if (type == "WordPiece") {
    auto step = std::make_unique<WordPiece>();
    step->prefix = component.get<std::string>("prefix", "##");
    step->cleanup = component.get("cleanup", true);
    return step;
  }
  component.unknown(
      {"Sequence", "ByteLevel", "ByteFallback", "Fuse", "Metaspace", "Replace", "Strip", "WordPiece"});
}

}  // namespace megalith
