// The tokenizer files of llama2.c (github.com/karpathy/llama2.c, tokenizer.py: export).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace megalith {

// From the bytes of a tokenizer.bin (int32 longest piece; then for each piece float32 score, int32 length,
// bytes) to the text of a tokenizer.json of Llama-2's kind: BPE with byte fallback whose merges follow from
// the scores. `vocab` is how many pieces there must be; `where` names the file in errors.
std::string tokenizer_from_llama2c(std::string_view bytes, int64_t vocab,
                                   const std::string& where = "tokenizer.bin");

}  // namespace megalith
