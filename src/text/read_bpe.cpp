// Builds the tables of a BPE model from its JSON.
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "text/bpe_model.h"
#include "text/byte_alphabet.h"
#include "text/component.h"
#include "text/utf8.h"

namespace megalith {
namespace {

std::pair<std::string, std::string> read_merge(const Component& component, const nlohmann::json& merge) {
  if (merge.is_array() && merge.size() == 2)
    return {merge[0].get<std::string>(), merge[1].get<std::string>()};
  if (merge.is_string()) {
    auto text = merge.get<std::string>();
    if (auto space = text.find(' '); space != std::string::npos)
      return {text.substr(0, space), text.substr(space + 1)};
  }
  component.bad("merges as \"left right\" or [\"left\", \"right\"]", print_json(merge));
}

TokenId find_token(const Component& component, const StringToId& vocab, const std::string& token) {
  auto found = vocab.find(token);
  if (found == vocab.end())
    component.bad("merges of tokens in the vocabulary", "\"" + token + "\", which is not in it");
  return found->second;
}

}  // namespace

bool mark_inside(const StringToId& vocab, std::string_view mark) {
  for (const auto& [token, id] : vocab)
    for (size_t at = token.find(mark, 1); at != std::string::npos; at = token.find(mark, at + 1))
      if (at < mark.size() || token.compare(at - mark.size(), mark.size(), mark) != 0) return true;
  return false;
}

std::unique_ptr<TokenModel> read_bpe(const Component& component, const StringToId& vocab,
                                     const PreTokenizerTraits& traits) {
  auto model = std::make_unique<BpeModel>();
  for (const char* field : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!component.get<std::string>(field, "").empty())
      component.bad(fmt::format("no {}", field), component.need<std::string>(field),
                    "this kind of BPE is not supported");
  if (component.get("dropout", 0.0) != 0.0) component.bad("no dropout", "dropout", "set it to null");

  model->byte_level_ = traits.byte_level;
  model->byte_fallback_ = component.get("byte_fallback", false);
  model->fuse_unknown_ = component.get("fuse_unk", false);
  model->ignore_merges_ = component.get("ignore_merges", false);
  if (auto unknown = component.get<std::string>("unk_token", ""); !unknown.empty()) {
    auto found = vocab.find(unknown);
    if (found == vocab.end()) component.bad("an unk_token in the vocabulary", unknown);
    model->unknown_ = found->second;
  }

  const auto& merges = component.array("merges");
  model->merges_ = MergeTable(merges.size());
  // Our own field, for files made from tiktoken's ranks. All merges into the same token have the same rank, so the
  // leftmost pair joins first.
  const bool rank_by_token = component.get("rank_by_token", false);
  int32_t rank = 0;
  for (const auto& merge : merges) {
    auto [left, right] = read_merge(component, merge);
    TokenId left_id = find_token(component, vocab, left), right_id = find_token(component, vocab, right);
    TokenId joined = find_token(component, vocab, left + right);
    model->merges_.add(left_id, right_id, {rank_by_token ? joined : rank++, joined});
  }

  model->byte_ids_.fill(-1);
  for (int b = 0; b < 256; b++) {
    std::string name = fmt::format("<0x{:02X}>", b);
    if (model->byte_level_) {
      name.clear();
      append_utf8(name, kByteToChar[static_cast<size_t>(b)]);
    }
    auto found = vocab.find(name);
    if (found != vocab.end()) model->byte_ids_[static_cast<size_t>(b)] = found->second;
  }
  if (!model->byte_level_) {
    model->vocab_ = vocab;
    // A Llama-2 text arrives as one word, with marks in place of spaces.
    constexpr std::string_view kMark = "\u2581";
    if (vocab.contains(kMark) && !mark_inside(vocab, kMark)) model->cut_before_ = kMark;
  } else if (model->ignore_merges_) {
    for (const auto& [token, id] : vocab)
      if (auto bytes = from_byte_alphabet(token)) model->vocab_.emplace(*bytes, id);
  }
  return model;
}

}  // namespace megalith
