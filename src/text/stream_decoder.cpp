#include "text/stream_decoder.h"

#include "text/utf8.h"

namespace megalith {

void StreamDecoder::skip(std::span<const TokenId> prompt) {
  for (TokenId id : prompt)
    if (keep_special_ || !tokenizer_.is_special(id)) window_.assign(1, id);
  emitted_ = tokenizer_.decode(window_, keep_special_).size();
}

std::string StreamDecoder::feed(TokenId id) {
  if (!keep_special_ && tokenizer_.is_special(id)) return "";
  window_.push_back(id);
  std::string text = tokenizer_.decode(window_, keep_special_);
  size_t certain = text.size() - incomplete_suffix(text);
  if (certain <= emitted_) return "";
  std::string out = text.substr(emitted_, certain - emitted_);
  emitted_ = certain;
  if (certain == text.size()) {  // all text has been returned: only the last token affects the text of later tokens
    window_.assign(1, id);
    emitted_ = tokenizer_.decode(window_, keep_special_).size();
  }
  return out;
}

std::string StreamDecoder::finish() {
  std::string text = tokenizer_.decode(window_, keep_special_);
  std::string out = text.size() > emitted_ ? text.substr(emitted_) : "";
  window_.clear();
  emitted_ = 0;
  return out;
}

}  // namespace megalith
