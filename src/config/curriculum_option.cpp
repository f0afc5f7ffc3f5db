#include "config/curriculum_option.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/join.h"
#include "base/mistakes.h"
#include "base/nearest.h"
#include "config/pacing_text.h"

namespace megalith {
namespace {

// Reads one mapping of the list. Errors name its place and key.
class Reader {
 public:
  Reader(const Yaml& map, size_t number) : map_(map), name_(fmt::format("curriculum[{}]", number)) {}

  CurriculumSettings read() {
    if (map_.kind != Yaml::Kind::map) refuse("", std::string(curriculum_form()));
    Mistakes mistakes;
    for (const auto& [key, value] : map_.entries) {
      given_.insert(key);
      mistakes.none_in([&] { take(key, value); });
    }
    mistakes.throw_any();
    need("metric");
    settle_hold();
    settle_pacing();
    settle_length();
    return entry_;
  }

 private:
  // Throws UserError with the line of the key, or with the line of the entry if the key is not written.
  [[noreturn]] void refuse(const std::string& key, const std::string& expected, const std::string& got = "",
                           const std::string& hint = "") const {
    const auto written = std::ranges::find(map_.entries, key, &Yaml::Entry::first);
    const Yaml& value = written == map_.entries.end() ? map_ : written->second;
    throw UserError({value.where, key.empty() ? name_ : name_ + "." + key, expected,
                     got.empty() ? value.describe() : got, hint});
  }
  bool has(const std::string& key) const { return given_.contains(key); }
  void need(const std::string& key) const {
    if (!has(key)) refuse(key, "a value", "nothing", fmt::format("write {}", curriculum_form()));
  }
  void must_not(const std::string& key, const std::string& when) const {
    if (has(key)) refuse(key, fmt::format("no {} {}", key, when), "", "remove it");
  }

  template <class Enum>
  void choose(const std::string& key, const Yaml& value, Enum& into) const {
    constexpr auto names = names_of(Enum{});
    for (size_t i = 0; i < names.size(); i++)
      if (value.kind == Yaml::Kind::scalar && value.text == names[i]) return void(into = static_cast<Enum>(i));
    refuse(key, join(names, ", "));
  }
  void number(const std::string& key, const Yaml& value, double& into, const Range& range) const {
    auto read = read_number(value, range);
    if (!read) {
      auto count = read_count(value, range);  // 1k
      if (count) read = static_cast<double>(*count);
    }
    const std::string bounds = range.describe();
    if (!read) refuse(key, bounds.empty() ? "a number" : "a number " + bounds);
    into = *read;
  }
  void text(const std::string& key, const Yaml& value, std::string& into) const {
    if (!is_text(value) || value.text.empty()) refuse(key, "a string");
    into = value.text;
  }

  void take(const std::string& key, const Yaml& value) {
    PacingSettings& pacing = entry_.pacing;
    if (key == "metric") text(key, value, entry_.metric);
    else if (key == "file") text(key, value, entry_.file);
    else if (key == "checkpoint") text(key, value, entry_.checkpoint);
    else if (key == "apply") choose(key, value, entry_.apply);
    else if (key == "unit") choose(key, value, entry_.unit);
    else if (key == "hold") choose(key, value, entry_.hold);
    else if (key == "from") number(key, value, pacing.from, {});
    else if (key == "to") number(key, value, pacing.to, {});
    else if (key == "step") number(key, value, pacing.step, above(0));
    else if (key == "over") {
      auto span = read_span(value);
      if (!span) {
        const bool bare = read_count(value, between(1, kLongest)).has_value();
        refuse(key, std::string(span_form()), "", bare ? fmt::format("did you mean {} steps?", value.text) : "");
      }
      std::tie(pacing.over, pacing.unit) = *span;
    } else if (key == "pacing") {
      if (!read_pacing(value, pacing))
        refuse(key, std::string(pacing_form()));
    } else {
      constexpr std::string_view known[] = {"metric", "file", "checkpoint", "apply", "unit",  "hold",
                                            "from",   "to",   "step",       "over",  "pacing"};
      const std::string_view near = nearest(key, known);
      refuse(key, std::string(curriculum_form()), "an unknown key",
             near.empty() ? "" : fmt::format("did you mean {}?", near));
    }
  }

  void settle_hold() {
    if (entry_.apply == CurriculumApply::filter) must_not("hold", "with apply: filter, which does not shorten sequences");
    if (entry_.apply != CurriculumApply::reshape) return;
    if (has("hold") && entry_.hold != Hold::tokens)
      refuse("hold", "tokens, because apply is reshape", "sequences",
             "use apply: truncate");
    entry_.hold = Hold::tokens;
  }

  void settle_pacing() {
    PacingSettings& pacing = entry_.pacing;
    if (!has("step")) pacing.step = entry_.changes_length() ? 8 : entry_.unit == DifficultyUnit::percentile ? 1 : 0;
    if (!pacing.table.empty()) {
      for (const char* key : {"from", "to", "step"}) must_not(key, "next to a table, which contains the values");
      if (has("over") && pacing.over != 0)
        refuse("over", "only the word steps or tokens, because there is a table", "a number", "remove the number");
      settle_ends(pacing);
    } else {
      for (const char* key : {"from", "to", "over"}) need(key);
      if (pacing.over == 0) refuse("over", "a number of steps or tokens", "no number", "write for example 5000 steps");
    }
    if (pacing.from > pacing.to)
      refuse("from", fmt::format("at most the value of `to` ({})", write_number(pacing.to)), write_number(pacing.from));
    if (entry_.unit == DifficultyUnit::percentile) {
      const bool table = !pacing.table.empty();
      if (pacing.from <= 0) refuse(table ? "pacing" : "from", "a percentile above 0", write_number(pacing.from));
      if (pacing.to > 100) refuse(table ? "pacing" : "to", "a percentile up to 100", write_number(pacing.to));
    }
  }

  void settle_length() {
    const bool loss = entry_.metric == "loss" && entry_.file.empty();
    if (!loss) must_not("checkpoint", "unless metric is loss and there is no file");
    if (!entry_.changes_length()) {
      if (loss && !has("checkpoint"))
        refuse("checkpoint", "the model that computes the loss, because metric is "
                             "loss", "nothing", "give a run directory or a model folder");
      return;
    }
    if (constexpr std::string_view length[] = {"length"}; entry_.metric != length[0])
      refuse("metric", fmt::format("length, because apply is {}", name_of(entry_.apply)), entry_.metric,
             nearest(entry_.metric, length).empty() ? "use apply: filter" : "did you mean length?");
    must_not("file", "with apply: truncate or reshape");
    if (entry_.unit == DifficultyUnit::percentile) refuse("unit", "value, because lengths are in tokens", "percentile");
    auto whole = [&](const char* key, double value) {
      if (value < 1 || value != std::floor(value))
        refuse(key, "a whole number of tokens from 1", write_number(value));
    };
    for (const auto& point : entry_.pacing.table) whole("pacing", point.value);
    if (!entry_.pacing.table.empty()) return;
    whole("from", entry_.pacing.from);
    whole("to", entry_.pacing.to);
    whole("step", entry_.pacing.step);
  }

  const Yaml& map_;
  std::string name_;
  std::set<std::string> given_;
  CurriculumSettings entry_;
};

// Returns the keys and values of an entry. `file` and `checkpoint` may change on resume, because files can be moved.
// The checkpoint records at which step the filters admit each sample, so the program detects changed values.
std::vector<OptionPiece> written(const CurriculumSettings& entry) {
  std::vector<OptionPiece> keys{{"metric", quote_yaml(entry.metric)}, {"apply", std::string(name_of(entry.apply))}};
  if (!entry.file.empty()) keys.push_back({"file", quote_yaml(entry.file), /*may_change=*/true});
  if (!entry.checkpoint.empty()) keys.push_back({"checkpoint", quote_yaml(entry.checkpoint), /*may_change=*/true});
  if (entry.unit != DifficultyUnit::value) keys.push_back({"unit", std::string(name_of(entry.unit))});
  if (entry.changes_length()) keys.push_back({"hold", std::string(name_of(entry.hold))});
  const PacingSettings& pacing = entry.pacing;
  if (pacing.table.empty()) {
    keys.push_back({"from", write_number(pacing.from)});
    keys.push_back({"to", write_number(pacing.to)});
    if (pacing.step > 0) keys.push_back({"step", write_number(pacing.step)});
  }
  keys.push_back({"over", write_span(pacing)});
  keys.push_back({"pacing", write_pacing(pacing)});
  return keys;
}

std::string write(const CurriculumSettings& entry) {
  std::vector<std::string> keys;
  for (const OptionPiece& piece : written(entry)) keys.push_back(fmt::format("{}: {}", piece.key, piece.value));
  return fmt::format("{{{}}}", join(keys, ", "));
}

}  // namespace

std::string_view curriculum_form() {
  return "{metric: NAME, apply: truncate | reshape | filter, from: A, to: B, over: N steps | N tokens} with optional keys "
         "step, pacing, unit, hold, file, checkpoint";
}

Entry curriculum_option() {
  Entry e = entry("curriculum", OptionType::curriculum, {}, "none: all samples in full length from the start",
                  "Curricula: train on easy samples first. Each entry has a metric and a limit that grows during the run. "
                  "truncate and reshape shorten sequences to the limit (metric length). filter admits samples whose "
                  "metric is at most the limit. Defaults of an entry: apply filter, unit value, hold sequences, pacing "
                  "linear. The default of step is 8 for lengths and 1 for percentiles. Other values are not rounded.");
  e.advice = "put the entries in brackets: curriculum: [{metric: ...}]";
  e.set = [](Config& c, const Yaml& value) {
    if (value.kind != Yaml::Kind::list) return false;
    std::vector<CurriculumSettings> entries;
    Mistakes mistakes;
    for (size_t i = 0; i < value.items.size(); i++)
      mistakes.none_in([&] { entries.push_back(Reader(value.items[i], i).read()); });
    mistakes.throw_any();
    c.curriculum = std::move(entries);
    return true;
  };
  e.get = [](const Config& c) {
    std::vector<std::string> entries;
    for (const CurriculumSettings& entry : c.curriculum) entries.push_back(write(entry));
    return fmt::format("[{}]", join(entries, ", "));
  };
  e.pieces = [](const Config& c) {
    std::vector<OptionPiece> all;
    for (size_t i = 0; i < c.curriculum.size(); i++)
      for (OptionPiece& piece : written(c.curriculum[i])) {
        piece.key = fmt::format("curriculum[{}].{}", i, piece.key);
        all.push_back(std::move(piece));
      }
    return all;
  };
  return e;
}

}  // namespace megalith
