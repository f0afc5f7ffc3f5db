// Names that other programs (DeepSpeed, Megatron-LM, transformers, axolotl, nanoGPT) use for our settings. Messages
// about unknown keys and words first suggest by meaning, with this table; then by spelling.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace megalith {

struct KnownKey {
  std::string_view theirs;  // last part of the key, in lower case, without '_' and '-'
  std::string_view ours;    // empty: we have no such setting
  std::string_view advice;  // the whole advice if `ours` is empty, otherwise added to it
};
struct KnownWord {
  std::string_view option, theirs, ours;
};
std::span<const KnownKey> known_keys();
std::span<const KnownWord> known_words();

// Returns what to use instead of a key of another program. `key` may have sections before its last part. Its spelling
// may be learning_rate, learning-rate or learningRate. Empty if the key is not in the table.
std::optional<std::string> advice_for_key(std::string_view key);

// Returns our word for another program's value of `option`, such as adamw for adamw_torch. Empty if the value is not in
// the table.
std::string_view word_for(std::string_view option, std::string_view value);

}  // namespace megalith
