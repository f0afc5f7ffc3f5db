// tiktoken's rank files: on each line a token in base 64 and its rank, which is its id.
#pragma once
#include <string>
#include <string_view>

namespace megalith {

bool looks_like_tiktoken(std::string_view content);

// The tokenizer.json that a rank file stands for. The file has neither split pattern nor special tokens, so
// they follow from the number of ranks (GPT-2's 50256, p50k's 50280, cl100k's 100256, o200k's 199998, Llama
// 3's 128000, Qwen's 151643), or for other numbers from a name that says gpt2, r50k, p50k, cl100k, o200k,
// llama3 or qwen; then <|endoftext|> is the first id behind the ranks. Anything else is a UserError.
std::string tokenizer_from_tiktoken(std::string_view content, const std::string& where);

}  // namespace megalith
