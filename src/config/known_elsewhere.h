// Names that other programs (DeepSpeed, Megatron-LM, transformers, axolotl, nanoGPT) use for our settings. Messages
// about unknown keys and words first suggest by meaning, with this table; then by spelling.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "config/config.h"
#include "config/yaml.h"

namespace megalith {

struct KnownKey {
  std::string_view theirs;  // their keys or the last parts of these, as plain words with spaces between them
  std::string_view ours;    // empty: we have no such setting
  std::string_view advice;  // the whole advice if `ours` is empty, otherwise added to it
  // Returns what the user's value means for the settings of `config`. Null: nothing to add.
  std::string (*meaning)(const Yaml& value, const Config& config) = nullptr;
};
struct KnownWord {
  std::string_view option, theirs, ours;  // `theirs`: plain words with spaces between them
};
std::span<const KnownKey> known_keys();
std::span<const KnownWord> known_words();

// Returns a word in lower case without '_' and '-': "learning-rate", "learningRate" and "learning_rate" are the same.
std::string plain_word(std::string_view word);

// Returns what to use instead of a key of another program. `key` may have sections before its last part. Its spelling
// may be learning_rate, learning-rate or learningRate. Empty if the key is not in the table.
std::optional<std::string> advice_for_key(std::string_view key);

// Returns our key or section for a key of another program. Empty if the key is not in the table, or if we have no such key.
std::string_view ours_for(std::string_view key);

// Returns what the value of such a key means for these settings, to be added to the advice. Empty if that is not known.
std::string meaning_of(std::string_view key, const Yaml& value, const Config& config);

// Returns the section that a section of another program (`training:`) or a misspelled one stands for. Empty: none.
std::string_view section_meant(std::string_view name);

// Returns our word for another program's value of `option`, such as adamw for adamw_torch. Empty if the value is not in
// the table.
std::string_view word_for(std::string_view option, std::string_view value);

}  // namespace megalith
