// Parts of the tokenizer.json files that we write.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "text/tokenizer.h"

namespace megalith {

nlohmann::json added_token_json(TokenId id, const std::string& content, bool special = true);

nlohmann::json byte_level_json(bool prefix_space, bool use_regex = true);

// Returns a BPE model: "vocab" and "merges" with all other fields at their defaults.
nlohmann::json bpe_json(nlohmann::json vocab, nlohmann::json merges);

// Returns a whole file; parts that are not given are null.
nlohmann::json tokenizer_file_json(nlohmann::json model, nlohmann::json added_tokens);

// Returns Llama-2's decoder: turns marks back into spaces and byte tokens into bytes.
nlohmann::json marked_text_decoder_json(bool strip_first_space);

}  // namespace megalith
