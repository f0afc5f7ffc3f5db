#include "text/token_model.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "text/bpe_model.h"
#include "text/component.h"
#include "text/unigram_model.h"
#include "text/wordpiece_model.h"

namespace megalith {

void TokenModel::encode_new(std::string_view word, WordCache::Entry* entry, const WordCache::Key& key,
                            std::vector<TokenId>& ids) const {
  thread_local std::vector<TokenId> found;
  found.clear();
  compute(word, found);
  ids.insert(ids.end(), found.begin(), found.end());
  if (entry) entry->fill(key, found);
}

[[noreturn]] static void refuse_model(const Component& component) { component.unknown({"BPE", "WordPiece", "Unigram"}); }

StringToId read_vocab(const Component& component) {
  std::string type = component.type();
  if (type == "Unigram") return read_unigram_vocab(component);
  if (type != "BPE" && type != "WordPiece") refuse_model(component);
  auto found = component.json.find("vocab");
  if (found == component.json.end() || !found->is_object())
    component.bad("an object vocab that maps tokens to ids", "no such object");
  StringToId vocab;
  vocab.reserve(found->size());
  for (const auto& [token, id] : found->items()) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= kLargestVocab)
      component.bad(fmt::format("ids from 0 to {}", kLargestVocab - 1),
                    fmt::format("{} for {}", print_json(id), token));
    vocab.emplace(token, id.get<TokenId>());
  }
  if (vocab.empty()) component.bad("a vocabulary", "an empty one");
  return vocab;
}

std::unique_ptr<TokenModel> read_model(const Component& component, const StringToId& vocab,
                                       const PreTokenizerTraits& traits) {
  std::string type = component.type();
  if (type == "BPE") return read_bpe(component, vocab, traits);
  if (type == "WordPiece") return read_wordpiece(component, vocab, traits);
  if (type == "Unigram") return read_unigram(component, vocab, traits);
  refuse_model(component);
}

}  // namespace megalith
