// GPT-2's own pair of files: encoder.json and vocab.bpe, also known as vocab.json and merges.txt.
#pragma once
#include <string>
#include <string_view>

namespace megalith {

// Returns the equivalent tokenizer.json: byte-level BPE with GPT-2's pattern. <|endoftext|>, <s>, </s>, <pad>, <unk>
// and <mask> are special tokens if the vocabulary has them. Throws a UserError that names the bad file.
std::string tokenizer_from_gpt2_files(std::string_view vocab, const std::string& vocab_file,
                                      std::string_view merges, const std::string& merges_file);

}  // namespace megalith
