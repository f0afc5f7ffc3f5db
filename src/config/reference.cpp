#include "config/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "config/options.h"

namespace megalith {
namespace {

using Json = nlohmann::ordered_json;

// Escapes bars, which would end a table cell.
std::string cell(std::string_view text) {
  std::string escaped;
  for (char c : text) (c == '|' ? escaped += '\\' : escaped) += c;
  return escaped;
}

std::string top_section(const Option& option) {
  return std::string(option.name.substr(0, option.name.find('.')));
}

std::string meaning(const Option& option) {
  std::string text(option.about);
  if (!option.applies_when.empty()) text += fmt::format(" Only if {}.", option.applies_when);
  if (option.shorthand) text += fmt::format(" Short form: `{}: VALUE`.", option.section());
  return text;
}

// Writes whole numbers as integers: 1, not 1.0.
Json bound(double value) {
  return value == std::floor(value) && std::abs(value) < 1e15 ? Json(static_cast<int64_t>(value))
                                                              : Json(value);
}

Json numeric(const char* type, const Range& range) {
  Json schema{{"type", type}};
  if (std::isfinite(range.low)) schema[range.open_low ? "exclusiveMinimum" : "minimum"] = bound(range.low);
  if (std::isfinite(range.high) && range.high < 1e15)
    schema[range.open_high ? "exclusiveMaximum" : "maximum"] = bound(range.high);
  return schema;
}

Json text_like(const char* pattern) {
  return {{"type", "string"}, {"pattern", pattern}};
}

// "5000 steps"; or only the unit, next to a table.
Json span_schema() {
  return text_like("^([0-9._]+ *[kKmMbBtT]? )?(steps?|tokens?)$");
}
std::vector<Json> pacing_schema() {
  const Json point{{"anyOf", {Json{{"type", "number"}}, text_like("^[0-9._]+ *[kKmMbBtT]?$")}}};
  const Json pair{{"type", "array"}, {"items", point}, {"minItems", 2}, {"maxItems", 2}};
  return {text_like("^(linear|root [0-9.]+)$"), {{"type", "array"}, {"items", pair}}};
}

// Returns schemas of the forms in which an option's value may be written.
std::vector<Json> forms(const Option& option) {
  Json any_text{{"type", {"string", "number", "boolean"}}};  // 1984 and true can also be file names
  switch (option.type) {
    case OptionType::count:
      return {numeric("integer", option.range), text_like("^[0-9._]+ *[kKmMbBtT]?$")};
    case OptionType::size:
      return {numeric("integer", option.range), text_like("^[0-9._]+ *([kKmMgGtT]([iI]?[bB])?|[bB])?$")};
    case OptionType::number:
      return {numeric("number", option.range)};
    case OptionType::boolean:
      return {{{"type", "boolean"}}};
    case OptionType::text:
      return {any_text};
    case OptionType::texts:
      return {any_text, {{"type", "array"}, {"items", any_text}}};
    case OptionType::blend: {
      Json weighted{
          {"type", "object"},
          {"properties", {{"path", any_text}, {"weight", {{"type", "number"}, {"exclusiveMinimum", 0}}}}},
          {"required", {"path", "weight"}},
          {"additionalProperties", false}};
      return {any_text,
              weighted,
              {{"type", "array"}, {"items", any_text}},
              {{"type", "array"}, {"items", weighted}}};
    }
    case OptionType::curriculum: {
      Json text{{"type", "string"}}, number{{"type", "number"}};
      Json entry{{"type", "object"},
                 {"properties",
                  {{"metric", text},
                   {"apply", {{"enum", {"truncate", "reshape", "filter"}}}},
                   {"unit", {{"enum", {"value", "percentile"}}}},
                   {"hold", {{"enum", {"sequences", "tokens"}}}},
                   {"from", number},
                   {"to", number},
                   {"step", number},
                   {"over", span_schema()},
                   {"pacing", {{"anyOf", pacing_schema()}}},
                   {"file", any_text},
                   {"checkpoint", any_text}}},
                 {"required", {"metric"}},
                 {"additionalProperties", false}};
      return {{{"type", "array"}, {"items", entry}}};
    }
    case OptionType::layers:
      return {{{"type", "array"}, {"items", {{"type", "integer"}, {"minimum", 0}}}}};
    case OptionType::span:
      return {span_schema()};
    case OptionType::pacing:
      return pacing_schema();
    case OptionType::choice:
      return {};
    case OptionType::numbers:
      return {
          {{"type", "array"}, {"items", numeric("number", option.range)}, {"minItems", 2}, {"maxItems", 2}}};
  }
  return {};
}

Json value_schema(const Option& option) {
  std::vector<Json> ways = forms(option);
  if (const auto words = option.all_words(); !words.empty()) ways.push_back({{"enum", words}});
  return ways.size() == 1 ? ways[0] : Json{{"anyOf", ways}};
}

Json option_schema(const Option& option) {
  Json schema{{"description", fmt::format("{} Default: {}.", meaning(option), option.default_text)}};
  schema.update(value_schema(option));
  return schema;
}

Json section_schema(const std::string& prefix) {
  Json properties = Json::object();
  Json short_form;
  for (const Option& option : options()) {
    if (!option.name.starts_with(prefix)) continue;
    std::string rest(option.name.substr(prefix.size()));
    size_t dot = rest.find('.');
    std::string key = rest.substr(0, dot);
    if (dot == std::string::npos) {
      properties[key] = option_schema(option);
      if (option.shorthand) short_form = value_schema(option);
    } else if (!properties.contains(key)) {
      properties[key] = section_schema(prefix + key + ".");
    }
  }
  Json schema{{"type", {"object", "null"}}, {"properties", properties}, {"additionalProperties", false}};
  return short_form.is_null() ? schema : Json{{"anyOf", {short_form, schema}}};
}

}  // namespace

std::string reference_markdown() {
  std::string page =
      "# Configuration keys\n\n"
      "Generated from the option table in `src/config/option_table.cpp`; `megalith config [KEY]` prints the "
      "same.\n\n"
      "A run is one YAML file plus `key=value` overrides on the command line, whose values are YAML too:\n"
      "`megalith train run.yaml train.lr=1e-3 'data.train=[a.txt, b.txt]' 'model.dropout={residual: 0.1}'`.\n"
      "Counts take k, M, B and T (powers of 1000), sizes KB, MB, GB, TB and KiB, MiB, GiB, TiB. A key "
      "without a value\n"
      "(`betas:`), or with the value null, has its default. The column *resume* says whether a run that is resumed may change "
      "the key.\n";
  std::string section;
  for (const Option& option : options()) {
    if (section != top_section(option)) {
      section = top_section(option);
      page += fmt::format("\n## {}\n\n| key | takes | default | meaning | resume |\n|---|---|---|---|---|\n",
                          section);
    }
    page += fmt::format("| `{}` | {} | {} | {} | {} |\n", option.name, cell(option.expected()),
                        cell(option.default_text), cell(meaning(option)),
                        option.may_change ? "may change" : "fixed");
  }
  return page;
}

std::string reference_schema() {
  Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
              {"title", "Megalith run"},
              {"description", "Settings of a training run."}};
  schema.update(section_schema(""));
  return print_json(schema, 2) + "\n";
}

}  // namespace megalith
