// Builders of table entries, one per type. Each connects a name to a field of Config, and knows how to read, check and
// write the type. A `Field` is a generic lambda from a (const) Config to the field.
#pragma once
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "base/units.h"
#include "config/names.h"
#include "config/options.h"

namespace megalith {

// These upper bounds keep products of sizes (parameters, tokens per step) within 63 bits. No real run comes near them.
inline constexpr double kLayers = 1e5, kWidth = 1e6, kFfn = 1e7, kVocab = 1e7, kMany = 1e9;
inline constexpr double kNeedsUnit = 1e6;   // bytes; a smaller size needs a unit, because "4" is meant as 4 GiB
inline constexpr double kLongest = 9e15;  // maximum steps or tokens of a pacing; exact as a double

inline Range from(double low) {
  return {.low = low};
}
inline Range between(double low, double high) {
  return {.low = low, .high = high};
}
inline Range above(double low) {
  return {.low = low, .open_low = true};
}
inline Range fraction() {
  return {.low = 0, .high = 1, .open_high = true};
}  // [0, 1)
inline Range inner_fraction() {
  return {.low = 0, .high = 1, .open_low = true, .open_high = true};
}  // (0, 1)

std::optional<double> read_number(const Yaml& value, const Range& range);  // finite and in range
std::optional<int64_t> read_count(const Yaml& value, const Range& range);  // accepts the suffixes k, M, B, T
std::optional<Bytes> read_size(const Yaml& value);  // from 1 byte; a small number without a unit is no size
bool is_text(const Yaml& value);  // a scalar without NUL, because no path or prompt can contain NUL
std::optional<bool> read_boolean(const Yaml& value);
std::optional<std::vector<std::string>> read_texts(
    const Yaml& value);                  // a single text becomes a list of one; rejects empty texts
std::string write_number(double value);  // the shortest text that reads back equal
std::string write_texts(const std::vector<std::string>& texts);
std::string write_bytes(Bytes size);  // exact: 4GiB, 1536MiB, 1000000007, 999B

// An Option under construction. A row of the table looks like `count(...).in("steps").free()`.
struct Entry : Option {
  Entry in(std::string_view unit_name) && { return unit = unit_name, std::move(*this); }
  Entry free() && { return may_change = true, std::move(*this); }
  Entry short_form() && { return shorthand = true, std::move(*this); }
  Entry when(std::string_view text, std::function<bool(const Config&)> predicate) && {
    return applies_when = text, applies = std::move(predicate), std::move(*this);
  }
  // Leaves the option out of a written config if `carried` is true, because another key has the value.
  Entry unless(std::function<bool(const Config&)> carried) && {
    get = [written = std::move(get), carried = std::move(carried)](const Config& c) {
      return carried(c) ? std::nullopt : written(c);
    };
    return std::move(*this);
  }
};

inline Entry entry(std::string_view name, OptionType type, Range range, std::string_view default_text,
                   std::string_view about) {
  Entry e;
  e.name = name;
  e.type = type;
  e.range = range;
  e.default_text = default_text;
  e.about = about;
  return e;
}

// `read` turns YAML into an optional value; `write` turns a value into text.
template <class Field, class Read, class Write>
Entry read_and_written(Entry e, Field field, Read read, Write write) {
  e.set = [=](Config& c, const Yaml& value) {
    auto got = read(value);
    if (got) field(c) = static_cast<std::decay_t<decltype(field(c))>>(*std::move(got));
    return got.has_value();
  };
  e.get = [=](const Config& c) { return write(field(c)); };
  return e;
}

template <class Field>
Entry count(std::string_view name, Field field, Range range, std::string_view default_text,
            std::string_view about) {
  return read_and_written(
      entry(name, OptionType::count, range, default_text, about), field,
      [=](const Yaml& value) { return read_count(value, range); }, [](auto value) { return fmt::format("{}", value); });
}

// A count that also accepts a word. The word stands for `meaning`, a value outside of the range.
template <class Field>
Entry count_or(std::string_view word, int64_t meaning, std::string_view name, Field field, Range range,
               std::string_view default_text, std::string_view about) {
  Entry e = count(name, field, range, default_text, about);
  e.words = {word};
  e.set = [=, plain = std::move(e.set)](Config& c, const Yaml& value) {
    if (value.kind != Yaml::Kind::scalar || value.text != word) return plain(c, value);
    field(c) = meaning;
    return true;
  };
  e.get = [=, plain = std::move(e.get)](const Config& c) {
    return field(c) == meaning ? std::string(word) : plain(c);
  };
  return e;
}

template <class Field>
Entry number(std::string_view name, Field field, Range range, std::string_view default_text,
             std::string_view about) {
  return read_and_written(entry(name, OptionType::number, range, default_text, about), field,
                          [=](const Yaml& value) { return read_number(value, range); }, write_number);
}

template <class First, class Second>
Entry two_numbers(std::string_view name, First first, Second second, Range range,
                  std::string_view default_text, std::string_view about) {
  Entry e = entry(name, OptionType::numbers, range, default_text, about);
  e.set = [=](Config& c, const Yaml& value) {
    if (value.kind != Yaml::Kind::list || value.items.size() != 2) return false;
    auto a = read_number(value.items[0], range), b = read_number(value.items[1], range);
    if (!a || !b) return false;
    first(c) = *a;
    second(c) = *b;
    return true;
  };
  e.get = [=](const Config& c) {
    return fmt::format("[{}, {}]", write_number(first(c)), write_number(second(c)));
  };
  return e;
}

template <class Field>
Entry boolean(std::string_view name, Field field, std::string_view default_text, std::string_view about) {
  return read_and_written(entry(name, OptionType::boolean, {}, default_text, about), field, read_boolean,
                          [](bool value) { return std::string(value ? "true" : "false"); });
}

// `shortest` is the smallest length in bytes.
template <class Field>
Entry text(std::string_view name, Field field, std::string_view default_text, std::string_view about,
           size_t shortest = 0) {
  Entry e = entry(name, OptionType::text, from(static_cast<double>(shortest)), default_text, about);
  e.set = [=](Config& c, const Yaml& value) {
    if (!is_text(value) || value.text.size() < shortest) return false;
    field(c) = value.text;
    return true;
  };
  e.get = [=](const Config& c) { return quote_yaml(field(c)); };
  return e;
}

template <class Field>
Entry texts(std::string_view name, Field field, std::string_view default_text, std::string_view about) {
  return read_and_written(entry(name, OptionType::texts, {}, default_text, about), field, read_texts, write_texts);
}

// Accepts one of the words of an enumeration.
template <class Field>
Entry choice(std::string_view name, Field field, std::string_view default_text, std::string_view about) {
  using Enum = std::decay_t<decltype(field(std::declval<Config&>()))>;
  constexpr auto names = names_of(Enum{});
  Entry e = entry(name, OptionType::choice, {}, default_text, about);
  e.words = {names.begin(), names.end()};
  e.set = [=](Config& c, const Yaml& value) {
    if (value.kind != Yaml::Kind::scalar) return false;
    for (size_t i = 0; i < names.size(); i++) {
      if (value.text != names[i]) continue;
      field(c) = static_cast<Enum>(i);
      return true;
    }
    return false;
  };
  e.get = [=](const Config& c) { return std::string(name_of(field(c))); };
  return e;
}

}  // namespace megalith
