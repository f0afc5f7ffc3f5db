// Measures how well the vectors of texts show which texts belong together.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "inference/embedder.h"

namespace megalith {

// Two texts and how similar people found them.
struct ScoredPair {
  std::string a, b;
  double score = 0;
};
// Reads {"a": "...", "b": "...", "score": 3.5}, one per line or as one JSON array. Throws UserError with the line.
std::vector<ScoredPair> read_scored_pairs(const std::filesystem::path& file);
// Returns Spearman's rank correlation of the cosine similarities with the scores.
double evaluate_pairs(Embedder& embedder, const std::vector<ScoredPair>& pairs);

struct QueryAndPositive {
  std::string query, positive;
};
std::vector<QueryAndPositive> read_queries(const std::filesystem::path& file);  // {"query": "...", "positive": "..."}

// Each query searches its positive among the different positives of all queries, by cosine similarity.
struct Retrieval {
  double recall_at_1 = 0, recall_at_5 = 0, recall_at_10 = 0;
  double reciprocal_rank = 0;  // mean
  int64_t candidates = 0;      // different positives
};
Retrieval evaluate_retrieval(Embedder& embedder, const std::vector<QueryAndPositive>& queries);

// Returns Spearman's rank correlation. Equal values share the mean of their ranks. NaN if all values of a list are equal.
double rank_correlation(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace megalith
