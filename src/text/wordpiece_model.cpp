#include "text/wordpiece_model.h"

#include <algorithm>

#include "text/component.h"

namespace megalith {

void WordPieceModel::compute(std::string_view word, std::vector<TokenId>& ids) const {
  auto characters = std::count_if(word.begin(), word.end(), [](char c) { return (c & 0xC0) != 0x80; });
  bool whole = characters <= most_characters_;
  for (size_t at = 0; whole && at < word.size();) {
    const StringToId& pieces = at == 0 ? first_ : following_;
    size_t length = std::min(longest_, word.size() - at);
    auto found = pieces.end();
    for (; length > 0; length--) {
      found = pieces.find(word.substr(at, length));
      if (found != pieces.end()) break;
    }
    whole = length > 0;
    if (whole) ids.push_back(found->second);
    at += length;
  }
  if (whole) return;
  ids.assign(1, unknown_);
}

std::unique_ptr<TokenModel> read_wordpiece(const Component& component, const StringToId& vocab,
                                           const PreTokenizerTraits& traits) {
  if (traits.byte_level)
    component.bad("a pre-tokenizer other than ByteLevel", "ByteLevel", "this combination is not supported");
  auto model = std::make_unique<WordPieceModel>();
  auto prefix = component.get<std::string>("continuing_subword_prefix", "##");
  auto unknown = component.get<std::string>("unk_token", "[UNK]");
  model->most_characters_ = component.get<int64_t>("max_input_chars_per_word", 100);
  auto found = vocab.find(unknown);
  if (found == vocab.end()) component.bad("an unk_token in the vocabulary", unknown);
  model->unknown_ = found->second;
  for (const auto& [token, id] : vocab) {
    model->longest_ = std::max(model->longest_, token.size());
    model->first_.emplace(token, id);
    if (token.starts_with(prefix)) model->following_.emplace(token.substr(prefix.size()), id);
  }
  return model;
}

}  // namespace megalith
