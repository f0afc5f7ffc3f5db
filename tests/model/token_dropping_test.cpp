#include "model/token_dropping.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "model/positions.h"
#include "model/tensor_ops.h"

namespace megalith {
namespace {

Pass pass_of(int64_t sequences, int64_t length, int64_t kept) {
  Pass pass;
  pass.sequences = sequences;
  pass.length = length;
  pass.seed = 5;
  pass.step = 11;
  pass.ids_N = tensor::zeros({sequences * length}, at::kLong);
  pass.dropping = {kept, {1, 2}, {}};
  return pass;
}
std::vector<int64_t> rows_of(const Pass& pass, int64_t layer = 1) { return kept_rows(pass, layer); }

TEST(TokenDropping, IsForTheLayersListedAndOnlyWhereSomethingIsDropped) {
  Pass pass = pass_of(2, 10, 4);
  EXPECT_TRUE(drops_tokens(pass, 1) && drops_tokens(pass, 2));
  EXPECT_FALSE(drops_tokens(pass, 0) || drops_tokens(pass, 3));
  pass.dropping.kept = 10;
  EXPECT_FALSE(drops_tokens(pass, 1));
  EXPECT_FALSE(drops_tokens(pass_of(2, 10, 0), 1));
}

TEST(TokenDropping, KeepsSortedRowsOfEachSequenceKeyedByLayerStepAndSequence) {
  const Pass pass = pass_of(3, 20, 7);
  const auto rows = rows_of(pass);
  ASSERT_EQ(rows.size(), 21u);
  for (size_t i = 0; i < rows.size(); i++) {
    EXPECT_EQ(rows[i] / 20, static_cast<int64_t>(i / 7));
    if (i % 7 > 0) EXPECT_GT(rows[i], rows[i - 1]);
  }
  Pass other = pass;
  other.step = 12;
  EXPECT_NE(rows_of(other), rows);
  EXPECT_NE(rows_of(pass, 2), rows);
  EXPECT_EQ(rows_of(pass), rows);
  // The tokens are the same for every cut of the batch.
  Pass last = pass_of(1, 20, 7);
  last.first_sequence = 2;
  auto alone = rows_of(last);
  for (int64_t& row : alone) row += 40;
  EXPECT_EQ(alone, std::vector<int64_t>(rows.begin() + 14, rows.end()));
}

TEST(TokenDropping, EveryTokenIsKeptEquallyOften) {
  std::map<int64_t, int> seen;
  constexpr int kTrials = 4000;
  Pass pass = pass_of(1, 13, 5);
  for (pass.step = 0; pass.step < kTrials; pass.step++)
    for (int64_t row : rows_of(pass)) seen[row]++;
  double chi_square = 0;
  const double expected = kTrials * 5.0 / 13;
  for (int64_t t = 0; t < 13; t++) chi_square += (seen[t] - expected) * (seen[t] - expected) / (expected * (1 - 5.0 / 13));
  EXPECT_LT(chi_square, 12 + 5 * std::sqrt(24.0));
}

TEST(TokenDropping, ProtectedTokensStay) {
  Pass pass = pass_of(2, 10, 4);
  pass.dropping.always.assign(20, 0);
  for (size_t n : {0u, 9u, 13u}) pass.dropping.always[n] = 1;
  const auto rows = rows_of(pass);
  for (int64_t n : {0, 9, 13}) EXPECT_TRUE(std::ranges::binary_search(rows, n)) << n;
  EXPECT_EQ(rows.size(), 8u);
}

// More protected tokens than can be kept: only protected tokens are kept, and each of them equally often.
TEST(TokenDropping, OfTooManyProtectedTokensARandomChoiceStays) {
  std::map<int64_t, int> seen;
  constexpr int kTrials = 4000;
  Pass pass = pass_of(1, 10, 4);
  pass.dropping.always = {1, 0, 1, 1, 0, 1, 0, 1, 1, 0};
  for (pass.step = 0; pass.step < kTrials; pass.step++) {
    const auto rows = rows_of(pass);
    ASSERT_EQ(rows.size(), 4u);
    for (int64_t row : rows) seen[row]++;
  }
  const double expected = kTrials * 4.0 / 6, deviation = std::sqrt(expected * 2 / 6);
  for (int64_t t = 0; t < 10; t++)
    EXPECT_NEAR(seen[t], pass.dropping.always[static_cast<size_t>(t)] ? expected : 0, 5 * deviation) << t;
  for (int64_t t : {1, 4, 6, 9}) EXPECT_EQ(seen[t], 0) << t;
}

// Compares documents, prefixes and positions of the kept tokens with those computed for each token.
TEST(TokenDropping, KeptTokensKeepPositionsDocumentsAndPrefixes) {
  Pass pass = pass_of(2, 12, 6);
  const std::vector<int64_t> begin{0, 0, 0, 3, 3, 3, 3, 7, 7, 9, 9, 9, 0, 0, 0, 0, 0, 5, 5, 5, 5, 5, 10, 10};
  pass.document_begin_N = tensor::from_values(begin);
  pass.visibility = Visibility::prefix;
  pass.prefix_B = {4, 12};
  const Pass kept = pass_of_rows(pass, kept_rows(pass, 1));
  const auto rows = rows_of(pass);
  EXPECT_EQ(kept.length, 6);
  EXPECT_EQ(kept.dropping.kept, 0);
  const std::vector<int64_t> positions = positions_of(kept);
  for (int64_t k = 0; k < 12; k++) {
    const int64_t row = rows[static_cast<size_t>(k)], b = k / 6;
    EXPECT_EQ(positions[static_cast<size_t>(k)], row % 12 - begin[static_cast<size_t>(row)]);
    int64_t first = k;  // first kept token of the same document
    while (first > b * 6 &&
           begin[static_cast<size_t>(rows[static_cast<size_t>(first - 1)])] == begin[static_cast<size_t>(row)])
      first--;
    EXPECT_EQ(kept.document_begin_N.const_data_ptr<int64_t>()[k], first - b * 6);
  }
  EXPECT_EQ(kept.prefix_B[0], std::ranges::count_if(rows, [](int64_t r) { return r < 4; }));
  EXPECT_EQ(kept.prefix_B[1], 6);
}

}  // namespace
}  // namespace megalith
