// Functions that all kinds of tokenizers share.
#pragma once
#include <string>

#include "text/tokenizer.h"

namespace megalith {

// Returns a tokenizer_config.json with which transformers.AutoTokenizer can open a folder with our tokenizer.json.
std::string tokenizer_config(const Tokenizer& tokenizer);

[[noreturn]] void throw_unknown_id(TokenId id, int64_t vocab_size);

}  // namespace megalith
