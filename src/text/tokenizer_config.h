// What every kind of tokenizer says alike.
#pragma once
#include <string>

#include "text/tokenizer.h"

namespace megalith {

// A tokenizer_config.json that lets transformers.AutoTokenizer open the folder with our tokenizer.json.
std::string tokenizer_config(const Tokenizer& tokenizer);

[[noreturn]] void throw_unknown_id(TokenId id, int64_t vocab_size);

}  // namespace megalith
