// BERT's vocab.txt, one token a line.
#pragma once
#include <optional>
#include <string>

namespace megalith {

// The tokenizer.json that it stands for. Without `lowercase`, whether text is lowercased follows from whether
// some token has a capital letter.
std::string tokenizer_from_vocab_txt(const std::string& lines, const std::string& where,
                                     std::optional<bool> lowercase);

}  // namespace megalith
