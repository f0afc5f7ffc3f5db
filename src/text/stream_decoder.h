// Decodes tokens to text while they are generated.
#pragma once
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace megalith {

// feed() takes one id and returns the text that is certain so far. It holds back the bytes of an incomplete character.
// The tokenizer's rules for leading spaces apply to the whole text. The returned pieces, with that of finish(),
// concatenate to decode() of all ids.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool keep_special = false)
      : tokenizer_(tokenizer), keep_special_(keep_special) {}

  // Sets the prompt, which the caller shows itself. Its last token decides whether the generated text begins with a
  // space.
  void skip(std::span<const TokenId> prompt);
  std::string feed(TokenId id);
  std::string finish();  // returns the text that is still held back

 private:
  const Tokenizer& tokenizer_;  // borrowed
  bool keep_special_;
  std::vector<TokenId> window_;  // tokens whose text is not returned yet, and one visible token before them
  size_t emitted_ = 0;           // bytes of the window's text that have been returned
};

}  // namespace megalith
