#include "text/token_bytes.h"

namespace megalith {

std::vector<int32_t> token_bytes(const Tokenizer& tokenizer) {
  std::vector<int32_t> bytes(static_cast<size_t>(tokenizer.vocab_size()), 0);
  for (TokenId id = 0; id < tokenizer.vocab_size(); id++) {
    if (tokenizer.is_special(id)) continue;
    // Some tokenizers drop the space in front of a text. So the second of two equal tokens is measured.
    const TokenId twice[] = {id, id};
    bytes[static_cast<size_t>(id)] =
        static_cast<int32_t>(tokenizer.decode(twice).size() - tokenizer.decode({twice, 1}).size());
  }
  return bytes;
}

}  // namespace megalith
