// Compares what the ids of two tokenizers mean.
#pragma once
#include <cstdint>

#include "text/tokenizer.h"

namespace megalith {

// Returns how many ids stand for different tokens, or exist in only one of the tokenizers.
int64_t different_tokens(const Tokenizer& a, const Tokenizer& b);

}  // namespace megalith
