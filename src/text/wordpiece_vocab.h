// BERT's vocab.txt: one token per line.
#pragma once
#include <optional>
#include <string>

namespace megalith {

// Returns the tokenizer.json that corresponds to a vocab.txt. If `lowercase` is not given, text is lowercased unless a
// token has a capital letter.
std::string tokenizer_from_vocab_txt(const std::string& lines, const std::string& where,
                                     std::optional<bool> lowercase);

}  // namespace megalith
