// Bytes of text that each token stands for. Losses per token of different tokenizers cannot be compared; bits per byte can.
#pragma once
#include <cstdint>
#include <vector>

#include "text/tokenizer.h"

namespace megalith {

// By id. 0 for special tokens. A marker of a leading space counts as the space.
std::vector<int32_t> token_bytes(const Tokenizer& tokenizer);

}  // namespace megalith
