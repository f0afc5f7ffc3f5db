// Merges of a vocabulary whose pieces have scores (SentencePiece's BPE).
#pragma once
#include <nlohmann/json_fwd.hpp>

#include <span>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace megalith {

// SentencePiece joins the two neighbours whose joint piece has the best score. So each way to make a piece from two
// pieces is a merge. Merges are sorted by the score of the joint piece, best first; then by the ids of the left and the
// right piece.
struct ScoreMerge {
  float score;
  TokenId left, right, joined;
};
std::vector<ScoreMerge> merges_by_score(std::span<const std::string> names, std::span<const float> scores);

// Returns the merges in the format of a tokenizer.json.
nlohmann::json merges_json(std::span<const ScoreMerge> merges, std::span<const std::string> names);

}  // namespace megalith
