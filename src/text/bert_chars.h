// The characters that BERT's normalizer and pre-tokenizer drop, strip or cut at. Equal to the reference, Hugging Face
// tokenizers, whose tables are those of Unicode 8. Characters assigned later are plain.
#pragma once
#include <cstdint>

#include "text/char_class.h"

namespace megalith {

enum class BertKind { plain, dropped, mark, punctuation, space };

BertKind bert_kind(uint32_t code_point);  // CodePoint::kInvalid is dropped

// True for the Unicode blocks that BERT splits into single characters (github.com/google-research/bert,
// tokenization.py).
bool bert_is_chinese(uint32_t code_point);

}  // namespace megalith
