#include "text/same_tokens.h"

#include <algorithm>

namespace megalith {

int64_t different_tokens(const Tokenizer& a, const Tokenizer& b) {
  if (a.files() == b.files()) return 0;
  const auto [common, all] = std::minmax({a.vocab_size(), b.vocab_size()});
  int64_t different = all - common;
  for (TokenId id = 0; id < common; id++) different += a.token_of(id) != b.token_of(id) ? 1 : 0;
  return different;
}

}  // namespace megalith
