#include "config/token_dropping_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/join.h"
#include "config/option_types.h"
#include "config/pacing_text.h"

namespace megalith {
namespace {

#define FIELD(member) [](auto& config) -> auto& { return config.token_dropping.member; }

bool drops_tokens(const Config& c) {
  return c.token_dropping.on();
}
bool has_table(const Config& c) {
  return !c.token_dropping.pacing.table.empty();
}

Entry layers() {
  Entry e = entry("token_dropping.layers", OptionType::layers, {}, "middle",
                  "Layers that drop tokens, counted from 0. middle: all layers except the first and the last.");
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
      auto layer = read_count(item, between(0, kLayers));
      if (!layer || std::ranges::find(list, *layer) != list.end()) return false;
      list.push_back(*layer);
    }
    std::ranges::sort(list);
    into.middle = false;
    into.layers = std::move(list);
    return true;
  };
  e.get = [](const Config& c) {
    return c.token_dropping.middle ? std::string("middle") : fmt::format("[{}]", join(c.token_dropping.layers, ", "));
  };
  return e;
}

Entry over() {
  Entry e = entry("token_dropping.over", OptionType::span, {}, "never: no layer drops tokens",
                  "Time in which the number of kept tokens grows from token_dropping.from to token_dropping.to. If "
                  "token_dropping.pacing is a table, give only the unit: steps or tokens.");
  e.words = {"never"};
  e.set = [](Config& c, const Yaml& value) {
    PacingSettings& pacing = c.token_dropping.pacing;
    if (value.kind == Yaml::Kind::scalar && value.text == "never") {
      pacing.over = 0;
      return true;
    }
    auto span = read_span(value);
    if (!span) return false;
    std::tie(pacing.over, pacing.unit) = *span;
    return true;
  };
  e.get = [](const Config& c) { return drops_tokens(c) ? write_span(c.token_dropping.pacing) : "never"; };
  return e;
}

Entry pacing() {
  Entry e = entry("token_dropping.pacing", OptionType::pacing, {}, "linear",
                  "How the number of kept tokens grows. A table lists each number and when it begins.");
  e.set = [](Config& c, const Yaml& value) {
    PacingSettings read = c.token_dropping.pacing;
    auto tokens = [](const PacingSettings::Point& at) { return at.value >= 1 && at.value == std::floor(at.value); };
    if (!read_pacing(value, read) || !std::ranges::all_of(read.table, tokens)) return false;
    if (!read.table.empty()) settle_ends(read);
    c.token_dropping.pacing = std::move(read);
    return true;
  };
  e.get = [](const Config& c) { return write_pacing(c.token_dropping.pacing); };
  return e;
}

}  // namespace

std::vector<Option> token_dropping_options() {
  auto used = [](Entry e) { return std::move(e).when("token_dropping.over is given", drops_tokens); };
  auto formula = [&](Entry e) { return used(std::move(e)).unless(has_table); };
  return {
      over(),
      used(layers()),
      formula(count("token_dropping.from", FIELD(pacing.from), between(0, kMany), "0",
                    "Number of tokens of each sequence that a layer keeps at first.")
                  .in("tokens")),
      formula(count("token_dropping.to", FIELD(pacing.to), between(0, kMany), "0",
                    "Number of tokens of each sequence that a layer keeps at the end. If this is data.sequence, no tokens "
                    "are dropped any more.")
                  .in("tokens")),
      formula(count("token_dropping.step", FIELD(pacing.step), between(1, kMany), "16",
                    "The number of kept tokens is a multiple of this, except at token_dropping.from and token_dropping.to.")
                  .in("tokens")),
      used(pacing()),
      used(boolean("token_dropping.keep_special", FIELD(keep_special), "false",
                   "If true, layers keep the special tokens of the text before all other tokens. Mask tokens are not "
                   "special in this sense.")),
  };
}

#undef FIELD

}  // namespace megalith
