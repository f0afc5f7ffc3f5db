// The tokenizer files of llama2.c (github.com/karpathy/llama2.c, tokenizer.py: export).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace megalith {

// Converts the bytes of a tokenizer.bin to the text of a tokenizer.json like that of Llama-2: BPE with byte fallback,
// with merges computed from the scores. Layout of the file: int32 longest piece; then for each piece float32 score,
// int32 length, bytes. `vocab` is the required number of pieces; `where` names the file in errors.
std::string tokenizer_from_llama2c(std::string_view bytes, int64_t vocab,
                                   const std::string& where = "tokenizer.bin");

}  // namespace megalith
