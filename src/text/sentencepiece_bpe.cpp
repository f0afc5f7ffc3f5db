// Makes merges from the pieces of a SentencePiece BPE model.
#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "text/bpe_model.h"
#include "text/score_merges.h"
#include "text/sentencepiece_file.h"
#include "text/utf8.h"

namespace megalith {

std::unique_ptr<TokenModel> bpe_of_sentencepiece(const SentencePieceFile& file) {
  using Type = SentencePieceFile::Type;
  auto model = std::make_unique<BpeModel>();
  std::vector<std::string> names;  // by id; empty for pieces that never occur in text
  std::vector<float> scores;
  model->byte_ids_.fill(-1);
  for (const auto& piece : file.pieces) {
    auto id = static_cast<TokenId>(names.size());
    if (piece.type == Type::unknown) model->unknown_ = id;
    if (piece.type == Type::byte)
      for (size_t b = 0; b < 256; b++)
        if (piece.text == fmt::format("<0x{:02X}>", b)) model->byte_ids_[b] = id;
    bool normal = piece.type == Type::normal;
    names.push_back(normal ? piece.text : "");
    scores.push_back(piece.score);
    if (normal) model->vocab_.emplace(piece.text, id);
  }
  // A character may be part of a piece without being a piece.
  model->first_inner_ = static_cast<TokenId>(names.size());
  for (const auto& piece : file.pieces)
    for (size_t at = 0; piece.type == Type::normal && at < piece.text.size();) {
      std::string character = piece.text.substr(at, code_point_at(piece.text, at).bytes);
      at += character.size();
      if (!model->vocab_.emplace(character, static_cast<TokenId>(names.size())).second) continue;
      model->inner_names_.push_back(character);
      names.push_back(character);
      scores.push_back(0);
    }

  std::vector<ScoreMerge> merges = merges_by_score(names, scores);
  model->merges_ = MergeTable(merges.size());
  int32_t rank = 0;  // the same for equal scores, so that the leftmost pair joins first
  for (size_t i = 0; i < merges.size(); i++) {
    if (i > 0 && merges[i].score != merges[i - 1].score) rank++;
    model->merges_.add(merges[i].left, merges[i].right, {rank, merges[i].joined});
  }
  model->byte_fallback_ = file.byte_fallback;
  model->fuse_unknown_ = true;
  constexpr std::string_view kMark = "\u2581";
  if (!mark_inside(model->vocab_, kMark)) model->cut_before_ = kMark;
  return model;
}

}  // namespace megalith
