#include "text/unigram_model.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "text/component.h"
#include "text/unigram_cut.h"

namespace megalith {

void UnigramModel::compute(std::string_view word, std::vector<TokenId>& ids) const {
  thread_local std::vector<UnigramPiece> cut;  // last piece first
  best_cut<double>(
      pieces_, word, unknown_score_, std::numeric_limits<double>::infinity(),
      [&](int32_t id, size_t) { return scores_[static_cast<size_t>(id)]; }, [](int32_t) { return true; }, cut);
  auto is_unknown = [&](const UnigramPiece& piece) {
    return piece.id == UnigramPiece::kUnknown || piece.id == unknown_;
  };
  for (size_t i = cut.size(); i-- > 0;) {
    if (!is_unknown(cut[i])) {
      ids.push_back(cut[i].id);
      continue;
    }
    size_t begin = cut[i].begin;  // neighbouring unknown characters become one token
    while (i > 0 && is_unknown(cut[i - 1])) i--;
    add_unknown(word.substr(begin, cut[i].end - begin), ids);
  }
}

void UnigramModel::add_unknown(std::string_view text, std::vector<TokenId>& ids) const {
  if (!unknown_)
    throw UserError({where_, "model Unigram", "an unk_id for text that no piece covers", "no unk_id",
                     "set unk_id to the index of the unknown token"});
  if (auto found = vocab_.find(text); found != vocab_.end()) return ids.push_back(found->second);
  auto byte_id = [&](char c) { return byte_ids_[static_cast<unsigned char>(c)]; };
  if (byte_fallback_ && std::all_of(text.begin(), text.end(), [&](char c) { return byte_id(c) >= 0; })) {
    for (char c : text) ids.push_back(byte_id(c));
    return;
  }
  ids.push_back(*unknown_);
}

StringToId read_unigram_vocab(const Component& component) {
  const auto& list = component.array("vocab");
  if (list.empty()) component.bad("a vocabulary", "an empty one");
  if (static_cast<int64_t>(list.size()) > kLargestVocab)
    component.bad(fmt::format("at most {} pieces", kLargestVocab), std::to_string(list.size()));
  StringToId vocab;
  vocab.reserve(list.size());
  TokenId id = 0;
  for (const auto& entry : list) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number())
      component.bad("pieces as [\"text\", score]", print_json(entry));
    vocab[entry[0].get<std::string>()] = id++;  // the last of equal pieces wins
  }
  return vocab;
}

std::unique_ptr<TokenModel> read_unigram(const Component& component, const StringToId& vocab,
                                         const PreTokenizerTraits& traits) {
  constexpr double kUnknownPenalty = 10;  // below the worst piece; SentencePiece's value
  if (traits.byte_level)
    component.bad("a pre-tokenizer other than ByteLevel", "ByteLevel", "this combination is not supported");
  auto model = std::make_unique<UnigramModel>();
  model->where_ = component.where;
  model->vocab_ = vocab;
  model->byte_fallback_ = component.get("byte_fallback", false);
  double lowest = std::numeric_limits<double>::infinity();
  std::vector<std::pair<std::string, int32_t>> keys;
  for (const auto& entry : component.array("vocab")) {
    keys.emplace_back(entry[0].get<std::string>(), static_cast<int32_t>(keys.size()));
    model->scores_.push_back(entry[1].get<double>());
    lowest = std::min(lowest, model->scores_.back());
  }
  model->unknown_score_ = lowest - kUnknownPenalty;
  auto size = static_cast<int64_t>(keys.size());
  if (auto unknown = component.get<int64_t>("unk_id", -1); unknown != -1) {
    if (unknown < 0 || unknown >= size)
      component.bad(fmt::format("unk_id from 0 to {}", size - 1), std::to_string(unknown));
    model->unknown_ = static_cast<TokenId>(unknown);
  }
  model->pieces_ = ByteTrie(std::move(keys));
  for (size_t b = 0; b < 256; b++) {
    auto found = vocab.find(fmt::format("<0x{:02X}>", b));
    model->byte_ids_[b] = found == vocab.end() ? -1 : found->second;
  }
  return model;
}

}  // namespace megalith
