#include "config/token_dropping_options.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "config/option_types.h"
#include "config/pacing_text.h"

namespace megalith {
namespace {

#define FIELD(member) [](auto& config) -> auto& { return config.token_dropping.member; }

bool on(const Config& c) {
  return c.token_dropping.on();
}

Entry layers() {
  Entry e = entry("token_dropping.layers", OptionType::layers, {}, "middle",
                  "Layers that drop, counted from 0; middle is all but the first and the last.");
  e.words = {"middle"};
  e.set = [](Config& c, const Yaml& value) {
    TokenDroppingSettings& into = c.token_dropping;
    if (value.kind == Yaml::Kind::scalar && value.text == "middle") {
      into.middle = true;
      into.layers.clear();
      return true;
    }
    if (value.kind != Yaml::Kind::list || value.items.empty()) return false;
    std::vector<int64_t> list;
    for (const Yaml& item : value.items) {
      auto layer = read_count(item, between(0, 1e5));
      if (!layer || std::ranges::find(list, *layer) != list.end()) return false;
      list.push_back(*layer);
    }
    std::ranges::sort(list);
    into.middle = false;
    into.layers = std::move(list);
    return true;
  };
  e.get = [](const Config& c) {
    return c.token_dropping.middle ? std::string("middle") : fmt::format("[{}]", fmt::join(c.token_dropping.layers, ", "));
  };
  return e;
}

Entry over() {
  Entry e = entry("token_dropping.over", OptionType::span, {}, "none: no layer drops",
                  "How long it takes from token_dropping.from to token_dropping.to.");
  e.words = {"never"};
  e.set = [](Config& c, const Yaml& value) {
    PacingSettings& pacing = c.token_dropping.pacing;
    if (value.kind == Yaml::Kind::scalar && value.text == "never") {
      pacing.over = 0;
      return true;
    }
    auto span = read_span(value);
    if (!span || span->first == 0) return false;
    std::tie(pacing.over, pacing.unit) = *span;
    return true;
  };
  e.get = [](const Config& c) { return c.token_dropping.pacing.over == 0 ? "never" : write_span(c.token_dropping.pacing); };
  return e;
}

Entry pacing() {
  Entry e = entry("token_dropping.pacing", OptionType::pacing, {}, "linear", "How it grows in between.");
  e.set = [](Config& c, const Yaml& value) {
    return value.kind == Yaml::Kind::scalar && read_pacing(value, c.token_dropping.pacing);
  };
  e.get = [](const Config& c) { return write_pacing(c.token_dropping.pacing); };
  return e;
}

}  // namespace

std::vector<Option> token_dropping_options() {
  auto used = [](Entry e) { return std::move(e).when("token_dropping.over is given", on); };
  return {
      over(),
      used(layers()),
      used(count("token_dropping.from", FIELD(pacing.from), between(0, 1e9), "0",
                 "Tokens of each sequence that a layer keeps at first.")
               .in("tokens")),
      used(count("token_dropping.to", FIELD(pacing.to), between(0, 1e9), "0",
                 "Tokens that it keeps in the end; with data.sequence of them nothing is dropped any more.")
               .in("tokens")),
      used(count("token_dropping.step", FIELD(pacing.step), between(1, 1e9), "16",
                 "Kept tokens are multiples of it, but for token_dropping.from and token_dropping.to.")
               .in("tokens")),
      used(pacing()),
      used(boolean("token_dropping.keep_special", FIELD(keep_special), "false",
                   "Special tokens of the tokenizer are kept in every layer.")),
  };
}

#undef FIELD

}  // namespace megalith
