#include "inference/similarity.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "text/json_records.h"

namespace megalith {
namespace {

using nlohmann::json;

template <class Record, class Parse>
std::vector<Record> read_records(const std::filesystem::path& file, const Parse& parse) {
  std::vector<Record> records;
  for_each_json_record(file, [&](const json& object, const std::string& where) { records.push_back(parse(object, where)); });
  if (records.size() < 2)
    throw UserError({file.string(), "", "at least 2 entries", fmt::format("{}", records.size()), ""});
  return records;
}

// Vectors of length 1, one per text.
struct UnitVectors {
  std::vector<float> values;
  size_t width;
  const float* at(size_t i) const { return values.data() + i * width; }
  double dot(size_t i, const UnitVectors& other, size_t j) const {
    return std::inner_product(at(i), at(i) + width, other.at(j), 0.0);
  }
};

UnitVectors unit_vectors(Embedder& embedder, const std::vector<std::string>& texts) {
  UnitVectors vectors{embedder.embed(texts), static_cast<size_t>(embedder.width())};
  for (size_t i = 0; i < texts.size(); i++)
    divide_by_length(std::span(vectors.values).subspan(i * vectors.width, vectors.width));
  return vectors;
}

std::vector<double> ranks_of(const std::vector<double>& x) {
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return x[i]; });
  std::vector<double> ranks(x.size());
  for (size_t first = 0; first < order.size();) {
    size_t end = first + 1;
    while (end < order.size() && x[order[end]] == x[order[first]]) end++;
    for (size_t i = first; i < end; i++) ranks[order[i]] = static_cast<double>(first + end - 1) / 2;
    first = end;
  }
  return ranks;
}

}  // namespace

std::vector<ScoredPair> read_scored_pairs(const std::filesystem::path& file) {
  return read_records<ScoredPair>(file, [](const json& object, const std::string& where) {
    ScoredPair pair{text_in(object, "a", where), text_in(object, "b", where)};
    const json score = object.value("score", json());
    if (!score.is_number())
      throw UserError({where, "score", "a number", object.contains("score") ? shown(score) : "no such field", ""});
    pair.score = score.get<double>();
    return pair;
  });
}

std::vector<QueryAndPositive> read_queries(const std::filesystem::path& file) {
  return read_records<QueryAndPositive>(file, [](const json& object, const std::string& where) {
    return QueryAndPositive{text_in(object, "query", where), text_in(object, "positive", where)};
  });
}

double rank_correlation(const std::vector<double>& x, const std::vector<double>& y) {
  const std::vector<double> a = ranks_of(x), b = ranks_of(y);
  const double mean = static_cast<double>(a.size() - 1) / 2;
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); i++) {
    ab += (a[i] - mean) * (b[i] - mean);
    aa += (a[i] - mean) * (a[i] - mean);
    bb += (b[i] - mean) * (b[i] - mean);
  }
  return ab / std::sqrt(aa * bb);
}

double evaluate_pairs(Embedder& embedder, const std::vector<ScoredPair>& pairs) {
  std::vector<std::string> a, b;
  std::vector<double> scores, similarities;
  for (const ScoredPair& pair : pairs) {
    a.push_back(pair.a);
    b.push_back(pair.b);
    scores.push_back(pair.score);
  }
  const UnitVectors of_a = unit_vectors(embedder, a), of_b = unit_vectors(embedder, b);
  for (size_t i = 0; i < pairs.size(); i++) similarities.push_back(of_a.dot(i, of_b, i));
  return rank_correlation(similarities, scores);
}

Retrieval evaluate_retrieval(Embedder& embedder, const std::vector<QueryAndPositive>& queries) {
  std::vector<std::string> texts, candidates;
  std::vector<size_t> wanted;
  std::map<std::string, size_t> number_of;
  for (const QueryAndPositive& query : queries) {
    texts.push_back(query.query);
    const auto [at, is_new] = number_of.emplace(query.positive, candidates.size());
    if (is_new) candidates.push_back(query.positive);
    wanted.push_back(at->second);
  }
  const UnitVectors asked = unit_vectors(embedder, texts), found = unit_vectors(embedder, candidates);
  Retrieval result{.candidates = std::ssize(candidates)};
  for (size_t q = 0; q < queries.size(); q++) {
    const double own = asked.dot(q, found, wanted[q]);
    int64_t better = 0;  // of equally similar candidates, the wanted one counts as the last
    for (size_t c = 0; c < candidates.size(); c++) better += c != wanted[q] && asked.dot(q, found, c) >= own;
    result.recall_at_1 += better < 1;
    result.recall_at_5 += better < 5;
    result.recall_at_10 += better < 10;
    result.reciprocal_rank += 1.0 / static_cast<double>(better + 1);
  }
  for (double* mean : {&result.recall_at_1, &result.recall_at_5, &result.recall_at_10, &result.reciprocal_rank})
    *mean /= static_cast<double>(queries.size());
  return result;
}

}  // namespace megalith
