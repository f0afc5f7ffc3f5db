// Rank files of tiktoken: each line has a token in base 64 and its rank. The rank is the id.
#pragma once
#include <string>
#include <string_view>

namespace megalith {

bool looks_like_tiktoken(std::string_view content);

// Returns the tokenizer.json that corresponds to a rank file. The file has no split pattern and no special tokens.
// Known numbers of ranks determine both: GPT-2's 50256, p50k's 50280, cl100k's 100256, o200k's 199998, Llama 3's
// 128000, Qwen's 151643. For other numbers, the file name must contain gpt2, r50k, p50k, cl100k, o200k, llama3, llama-3
// or qwen. Then <|endoftext|> is the first id after the ranks. Otherwise throws UserError.
std::string tokenizer_from_tiktoken(std::string_view content, const std::string& where);

}  // namespace megalith
