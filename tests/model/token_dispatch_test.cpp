// Tests sending rows to the ranks that have their experts, and back.
#include <gtest/gtest.h>

#include "base/philox.h"
#include "model/layers/token_dispatch.h"
#include "model/tensor_ops.h"
#include "model/thread_ranks.h"

namespace megalith {
namespace {
using namespace testing_support;

constexpr int64_t kWidth = 3;

// Returns how many rows a rank has for an expert. Some trials have ranks or experts without rows, or no rows.
int64_t rows_for(int64_t rank, int64_t expert, int64_t trial) {
  if ((trial == 1 && rank == 0) || (trial == 2 && expert == 0) || trial == 3) return 0;
  return static_cast<int64_t>(
      Philox(9, RandomUse::initial_weights, static_cast<uint64_t>(rank), static_cast<uint64_t>(trial))
          .block(static_cast<uint64_t>(expert))[0] %
      5);
}

// Encodes where a row comes from.
double number(int64_t rank, int64_t expert, int64_t row) { return static_cast<double>((rank * 100 + expert) * 100 + row); }

// Returns all rows of an expert, in the order of the ranks.
std::vector<double> rows_of(int64_t expert, int64_t ranks, int64_t trial) {
  std::vector<double> all;
  for (int64_t from = 0; from < ranks; from++)
    for (int64_t row = 0; row < rows_for(from, expert, trial); row++) all.push_back(number(from, expert, row));
  return all;
}

void expect_travel(const Exchanges& me, int64_t ranks, int64_t each, int64_t trial) {
  const int64_t rank = me.mesh.coordinate(Axis::expert), experts = ranks * each;
  std::vector<int64_t> begin{0};
  std::vector<double> sent;
  for (int64_t e = 0; e < experts; e++) {
    for (int64_t row = 0; row < rows_for(rank, e, trial); row++) sent.push_back(number(rank, e, row));
    begin.push_back(std::ssize(sent));
  }
  // One token per row, in another order.
  const int64_t R = begin.back();
  at::Tensor x_NC = tensor::empty({R, kWidth}, at::kDouble), numbers = tensor::empty({R}, at::kDouble);
  std::vector<int64_t> token, token_begin, token_rows;
  for (int64_t r = 0; r <= R; r++) token_begin.push_back(r);
  for (int64_t r = 0; r < R; r++) {
    token.push_back(R - 1 - r);
    token_rows.push_back(R - 1 - r);
    numbers.mutable_data_ptr<double>()[r] = sent[static_cast<size_t>(r)];
    for (int64_t c = 0; c < kWidth; c++)
      x_NC.mutable_data_ptr<double>()[(R - 1 - r) * kWidth + c] =
          sent[static_cast<size_t>(r)] + 0.1 * static_cast<double>(c);
  }
  const TokenDispatch way(me.expert, begin);
  std::vector<double> wanted;
  std::vector<int64_t> wanted_begin{0}, wanted_experts;
  for (int64_t e = 0; e < experts; e++) {
    const std::vector<double> all = rows_of(e, ranks, trial);
    int64_t first = 0, last = e / each == rank ? std::ssize(all) : 0;
    if (me.expert) {
      first = way.balance().cuts[static_cast<size_t>(e)][static_cast<size_t>(rank)];
      last = way.balance().cuts[static_cast<size_t>(e)][static_cast<size_t>(rank) + 1];
    }
    if (first == last && e / each != rank) continue;
    wanted.insert(wanted.end(), all.begin() + first, all.begin() + last);
    wanted_begin.push_back(std::ssize(wanted));
    wanted_experts.push_back(e);
  }
  EXPECT_EQ(std::vector<int64_t>(way.begin().begin(), way.begin().end()), wanted_begin);
  EXPECT_EQ(std::vector<int64_t>(way.experts().begin(), way.experts().end()), wanted_experts);
  std::vector<int64_t> all{0};
  for (int64_t e = rank * each; e < (rank + 1) * each; e++) all.push_back(all.back() + std::ssize(rows_of(e, ranks, trial)));
  EXPECT_EQ(std::vector<int64_t>(way.wanted().begin(), way.wanted().end()), all);
  const at::Tensor arrived = way.dispatch(x_NC, token), few = way.dispatch(numbers);
  ASSERT_EQ(arrived.size(0), std::ssize(wanted));
  ASSERT_EQ(arrived.size(1), kWidth);
  ASSERT_EQ(few.dim(), 1);
  for (int64_t r = 0; r < arrived.size(0); r++) {
    EXPECT_EQ(few.const_data_ptr<double>()[r], wanted[static_cast<size_t>(r)]);
    EXPECT_EQ(arrived.const_data_ptr<double>()[r * kWidth + 2], wanted[static_cast<size_t>(r)] + 0.2);
  }
  EXPECT_TRUE(way.combine(arrived, token_begin, token_rows).equal(x_NC));
  EXPECT_TRUE(way.combine(few).equal(numbers));
}

TEST(TokenDispatch, RowsComeToTheirExpertsInTheOrderOfTheRanksAndGoBack) {
  for (int64_t ranks : {1, 2, 3, 4})
    for (int64_t each : {1, 2, 5})
      for (int64_t trial = 0; trial < 6; trial++)
        for (int64_t worth : {1, 3, 1000})
          run_ranks(1, 1, ContextForm::ring, [&](const Exchanges& me) {
            if (me.expert) static_cast<ThreadExchange*>(me.expert)->worth = worth;
            expect_travel(me, ranks, each, trial);
          }, ranks);
}

// No padding: a rank sends only the rows that its tokens need from other ranks.
TEST(TokenDispatch, SendsExactlyWhatGoesElsewhere) {
  run_ranks(1, 1, ContextForm::ring, [&](const Exchanges& me) {
    const int64_t rank = me.mesh.coordinate(Axis::expert);
    const std::vector<int64_t> begin{0, 3 + rank, 3 + rank, 10, 14};  // offsets of four experts, two per rank
    auto* exchange = static_cast<ThreadExchange*>(me.expert);
    exchange->worth = 1000;
    const TokenDispatch way(me.expert, begin);
    EXPECT_EQ(exchange->bytes, 4 * 8);  // number of rows for every expert
    exchange->bytes = 0;
    way.dispatch(tensor::empty({14, kWidth}, at::kFloat), std::vector<int64_t>(14, 0));
    EXPECT_EQ(exchange->bytes, 4 * kWidth * (rank == 0 ? 14 - 3 : 4));
  }, 2);
}

TEST(ExpertBalance, LeaveEveryRankWithAsManyRows) {
  for (const std::vector<int64_t>& rows : std::vector<std::vector<int64_t>>{
           {100, 0, 0, 0}, {0, 0, 37, 64}, {7, 7, 7, 8}, {0, 0, 0, 0}, {1, 90, 5, 4}, {50, 50, 0, 1}}) {
    const ExpertBalance balance = balance_experts(rows, 2, 1);
    int64_t all = 0, first = 0;
    for (size_t e = 0; e < rows.size(); e++) {
      EXPECT_EQ(balance.cuts[e].back(), rows[e]);
      all += rows[e];
      first += balance.cuts[e][1];
    }
    EXPECT_TRUE(first == all / 2 || first == (all + 1) / 2) << first << " of " << all;
  }
}

TEST(ExpertBalance, AreNotWorthAFewRowsAndBoundWhatARankBorrows) {
  EXPECT_TRUE(balance_experts(std::vector<int64_t>{60, 60, 50, 50}, 2, 11).shadows.empty());
  EXPECT_EQ(balance_experts(std::vector<int64_t>{60, 60, 50, 50}, 2, 10).shadows.size(), 1u);
  // All tokens want eight experts on one rank of four. No rank borrows more than two of them.
  std::vector<int64_t> rows(32, 0), borrowed(4, 0);
  std::fill(rows.begin(), rows.begin() + 8, 10);
  for (const ExpertBalance::ShadowExpert& shadow : balance_experts(rows, 4, 1).shadows) {
    EXPECT_EQ(shadow.owner, 0);
    borrowed[static_cast<size_t>(shadow.taker)]++;
  }
  EXPECT_EQ(borrowed, (std::vector<int64_t>{0, 2, 2, 2}));
}

}  // namespace
}  // namespace megalith
