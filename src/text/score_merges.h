// Merges of a vocabulary whose pieces have scores (SentencePiece's BPE).
#pragma once
#include <nlohmann/json_fwd.hpp>

#include <span>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace megalith {

// SentencePiece joins the neighbours whose joint piece scores best. So every way to make a piece of two is a
// merge, as early as the piece's score; merges into one piece follow each other, those of earlier pieces
// first.
struct ScoreMerge {
  float score;
  TokenId left, right, joined;
};
std::vector<ScoreMerge> merges_by_score(std::span<const std::string> names, std::span<const float> scores);

// As a tokenizer.json has them.
nlohmann::json merges_json(std::span<const ScoreMerge> merges, std::span<const std::string> names);

}  // namespace megalith
