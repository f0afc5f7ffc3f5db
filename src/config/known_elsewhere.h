// What other programs (DeepSpeed, Megatron-LM, transformers, axolotl, nanoGPT) call our settings. Messages about unknown keys
// and words suggest by meaning with this table, before they suggest by spelling.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace megalith {

struct KnownKey {
  std::string_view theirs;  // the last part, in lower case, without '_' and '-'
  std::string_view ours;    // empty: we have no such setting
  std::string_view advice;  // all of the advice if `ours` is empty, else an addition
};
struct KnownWord {
  std::string_view option, theirs, ours;
};
std::span<const KnownKey> known_keys();
std::span<const KnownWord> known_words();

// What to do instead of a key of another program. `key` may have sections before its last part, and any of the spellings
// learning_rate, learning-rate, learningRate. Empty if no program that we know has it.
std::optional<std::string> advice_for_key(std::string_view key);

// Our word for another program's value of `option`, such as adamw for adamw_torch. Empty if there is none.
std::string_view word_for(std::string_view option, std::string_view value);

}  // namespace megalith
