#include "config/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <sstream>
#include <utility>

#include "base/error.h"

namespace megalith {
namespace {

// Limits far above any real configuration. They bound time and stack for hostile input.
constexpr size_t kMostBytes = 1 << 20;
constexpr size_t kDeepest = 16;
constexpr size_t kMostEntries = 1000;

// Returns the length of the UTF-8 sequence that starts at `at` (RFC 3629: shortest form, no surrogates), or 0 if it is
// not valid.
size_t utf8_length(std::string_view text, size_t at) {
  auto byte = [&](size_t i) {
    return at + i < text.size() ? static_cast<uint8_t>(text[at + i]) : uint8_t{0};
  };
  auto continues = [&](size_t i, uint8_t low = 0x80, uint8_t high = 0xBF) {
    return byte(i) >= low && byte(i) <= high;
  };
  uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    uint8_t low = first == 0xE0 ? 0xA0 : 0x80, high = first == 0xED ? 0x9F : 0xBF;
    return continues(1, low, high) && continues(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    uint8_t low = first == 0xF0 ? 0x90 : 0x80, high = first == 0xF4 ? 0x8F : 0xBF;
    return continues(1, low, high) && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(const std::string& where, bool numbered) : where_(where), numbered_(numbered) {}

  std::string place(int line_from_0) const {
    return numbered_ && line_from_0 >= 0 ? fmt::format("{}:{}", where_, line_from_0 + 1) : where_;
  }

  Yaml take() { return std::move(root_); }
  bool empty() const { return documents_ == 0; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0)
      throw UserError({place(mark.line), "", "one YAML document", "a second one", "remove the --- line; a section is written as model:, not as [model]"});
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    add(at(Yaml::Kind::null, mark), mark);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override { refuse_anchor(mark, anchor); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    Yaml scalar = at(Yaml::Kind::scalar, mark);
    scalar.text = value;
    add(std::move(scalar), mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Yaml::Kind::list, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Yaml::Kind::map, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Yaml node;
    YAML::Mark mark;
    std::optional<std::string> key;  // key of a map's entry whose value comes next
    std::string key_where;
  };

  Yaml at(Yaml::Kind kind, const YAML::Mark& mark) const {
    Yaml node;
    node.kind = kind;
    node.where = place(mark.line);
    return node;
  }

  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) const {
    if (anchor != 0)
      throw UserError({place(mark.line), "", "plain values", "an anchor or alias (& or *)",
                       "write the value itself, or quote the text if it is meant literally"});
  }

  void refuse_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != "?" && tag != "!")  // yaml-cpp's marks for plain and quoted
      throw UserError({place(mark.line), "", "plain values", fmt::format("the tag {}", tag),
                       "quote the text if it is meant literally"});
  }

  void open(Yaml::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (open_.size() >= kDeepest)
      throw UserError(
          {place(mark.line), "", fmt::format("at most {} levels of nesting", kDeepest), "more",
           "look for a bracket that is not closed"});
    open_.push_back({at(kind, mark), mark, std::nullopt, ""});
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    add(std::move(done.node), done.mark);
  }

  void add(Yaml node, const YAML::Mark& mark) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.kind == Yaml::Kind::list) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.key) {
      begin_entry(parent, node, mark);
    } else {
      node.where =
          parent.key_where;  // the place of a value is the line of its key, even if the value starts on the next line
      parent.node.entries.push_back({*std::exchange(parent.key, std::nullopt), std::move(node)});
    }
  }

  void begin_entry(Open& parent, const Yaml& key, const YAML::Mark& mark) const {
    if (key.kind != Yaml::Kind::scalar)
      throw UserError({place(mark.line), "", "a word as key", key.describe(), "write key: value"});
    if (parent.node.entries.size() >= kMostEntries)
      throw UserError(
          {place(mark.line), "", fmt::format("at most {} keys in one mapping", kMostEntries), "more", ""});
    for (const auto& [earlier, value] : parent.node.entries)
      if (earlier == key.text)
        throw UserError({place(mark.line), key.text, "each key once", "a second value",
                         fmt::format("remove one; the first is at {}", value.where)});
    parent.key = key.text;
    parent.key_where = place(mark.line);
  }

  const std::string& where_;
  bool numbered_;
  int documents_ = 0;
  std::vector<Open> open_;
  Yaml root_;
};

void check_characters(std::string_view text, const TreeBuilder& builder) {
  int line = 0;
  for (size_t at = 0; at < text.size();) {
    uint8_t byte = static_cast<uint8_t>(text[at]);
    size_t length = utf8_length(text, at);
    bool control = byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r';
    if (length == 0 || control)
      throw UserError(
          {builder.place(line), "", "text in UTF-8", fmt::format("the byte 0x{:02x}", byte),
           control ? "write control characters as escapes in double quotes" : "save the file as UTF-8"});
    line += byte == '\n';
    at += length;
  }
}

constexpr size_t kMostShown = 60;  // bytes of a value

}  // namespace

std::string Yaml::describe() const {
  switch (kind) {
    case Kind::null:
      return "nothing";
    case Kind::list: {
      if (items.empty()) return "an empty list";
      std::string all;
      for (const Yaml& item : items) {
        all += (all.empty() ? "" : ", ") + item.describe();
        if (all.size() > kMostShown) return fmt::format("a list of length {}", items.size());
      }
      return fmt::format("[{}]", all);
    }
    case Kind::map:
      return "a mapping";
    case Kind::scalar:
      break;
  }
  return describe_text(text);
}

std::string describe_text(const std::string& text) {
  if (text.empty()) return "an empty string";
  std::string shown = text;
  if (text.size() > kMostShown) {
    size_t end = kMostShown;
    while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) end--;  // do not cut a character
    shown = text.substr(0, end) + "...";
  }
  bool spaced = shown.front() == ' ' || shown.back() == ' ';
  bool controls =
      std::any_of(shown.begin(), shown.end(), [](char c) { return static_cast<uint8_t>(c) < 0x20; });
  return spaced || controls ? quote_yaml(shown) : shown;
}

bool is_utf8(std::string_view text) {
  for (size_t at = 0, length; at < text.size(); at += length)
    if ((length = utf8_length(text, at)) == 0) return false;
  return true;
}

namespace {

// Lines count from 0. Returns an empty text if there is no such line.
std::string_view line_of(std::string_view text, int line) {
  for (; line > 0 && text.find('\n') != std::string_view::npos; line--) text.remove_prefix(text.find('\n') + 1);
  return line == 0 ? text.substr(0, text.find('\n')) : std::string_view();
}

// Returns the words of a line that has words, but no key. Returns an empty text for every other line.
std::string words_without_key(std::string_view line) {
  const size_t begin = line.find_first_not_of(' '), end = line.find_last_not_of(" \r");
  if (begin == std::string_view::npos) return "";
  line = line.substr(begin, end + 1 - begin);
  const bool other = std::string_view("#-[]{},\"'&*!|>%").find(line.front()) != std::string_view::npos;
  const bool has_key = line.ends_with(':') || line.find(": ") != std::string_view::npos;
  const bool in_brackets = line.find_first_of("{}[]") != std::string_view::npos;
  return other || has_key || in_brackets ? "" : std::string(line);
}

// Names the usual causes in the user's words. The parser often reports the line after the mistake.
UserError::Parts describe_syntax(const TreeBuilder& builder, std::string_view text, const YAML::Exception& error) {
  const int line = error.mark.line;
  const std::string_view reported = line_of(text, line);
  if (reported.substr(std::min(reported.find_first_not_of(' '), reported.size())).starts_with('\t'))
    return {builder.place(line), "", "spaces at the beginning of the line", "a tab",
            "this line begins with a tab: replace every tab with two spaces"};
  for (int at : {line - 1, line}) {
    const std::string words = at < 0 ? "" : words_without_key(line_of(text, at));
    if (words.empty()) continue;
    const size_t end = std::min(words.find_first_of(" =:"), words.size());
    const size_t value = std::min(words.find_first_not_of(" =:", end), words.size());
    return {builder.place(at), "", "a key, a colon, a space and a value", quote_yaml(words),
            fmt::format("write {}:{}{}", words.substr(0, end), value < words.size() ? " " : "", words.substr(value))};
  }
  if (error.msg.find("flow not found") != std::string::npos)
    return {builder.place(line), "", "a closing bracket", "", "a { or [ in this line or before it is not closed, or a comma is missing in it"};
  return {builder.place(line), "", "well-formed YAML", "",
          error.msg + "; check the indentation of this line, and put text with special characters in quotes"};
}

}  // namespace

Yaml parse_yaml(std::string_view text, const std::string& where, bool numbered) {
  TreeBuilder builder(where, numbered);
  if (text.size() > kMostBytes)
    throw UserError({where, "", "at most 1 MiB of YAML", fmt::format("{} bytes", text.size()), ""});
  check_characters(text, builder);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    throw UserError(describe_syntax(builder, text, error));
  }
  // yaml-cpp takes a directive without a document for an empty file.
  if (builder.empty() && (text.starts_with('%') || text.find("\n%") != std::string_view::npos))
    throw UserError({builder.place(0), "", "well-formed YAML", "a directive (%) without a document",
                     "put text with special characters in quotes"});
  return builder.take();
}

std::string quote_yaml(std::string_view text) {
  auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  auto safe = [&](char c) { return letter(c) || c == '/' || c == '.' || c == '_' || c == '-' || c == '+'; };
  bool plain = !text.empty() && (letter(text[0]) || text[0] == '/' || text[0] == '.') &&
               std::all_of(text.begin(), text.end(), safe) && text.find("...") != 0 && text != "null" &&
               text != "Null" && text != "NULL";
  if (plain) return std::string(text);
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      (quoted += '\\') += c;
    else if (static_cast<uint8_t>(c) < 0x20 || c == 0x7F)
      quoted += fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
    else
      quoted += c;
  }
  return quoted + '"';
}

}  // namespace megalith
