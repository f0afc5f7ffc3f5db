// Which characters BERT's normalizer and pre-tokenizer drop, strip or cut at, as the reference (Hugging Face
// tokenizers, whose tables are of Unicode 8) sees them: characters assigned later are of no kind.
#pragma once
#include <cstdint>

#include "text/char_class.h"

namespace megalith {

enum class BertKind { plain, dropped, mark, punctuation, space };

BertKind bert_kind(uint32_t code_point);  // CodePoint::kInvalid is dropped

// The blocks that BERT takes character by character (github.com/google-research/bert, tokenization.py).
bool bert_is_chinese(uint32_t code_point);

}  // namespace megalith
