// Rows on their way to the ranks that have their experts, and back.
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include "base/philox.h"
#include "model/layers/expert_travel.h"
#include "model/thread_ranks.h"

namespace megalith {
namespace {
using namespace testing_support;

constexpr int64_t kWidth = 3;

// How many rows a rank has for an expert: all kinds of nothing among them.
int64_t rows_for(int64_t rank, int64_t expert, int64_t trial) {
  if ((trial == 1 && rank == 0) || (trial == 2 && expert == 0) || trial == 3) return 0;
  return static_cast<int64_t>(Philox(9, RandomUse::initial_weights, static_cast<uint64_t>(rank), static_cast<uint64_t>(trial))
                                  .block(static_cast<uint64_t>(expert))[0] % 5);
}

// A row says where it comes from.
double number(int64_t rank, int64_t expert, int64_t row) { return static_cast<double>((rank * 100 + expert) * 100 + row); }

TEST(ExpertTravel, RowsComeToTheirExpertsInTheOrderOfTheRanksAndGoBack) {
  for (int64_t ranks : {1, 2, 3, 4})
    for (int64_t each : {1, 2, 5})
      for (int64_t trial = 0; trial < 6; trial++)
        run_ranks(1, 1, ContextForm::ring, [&](const Ranks& me) {
          const int64_t rank = me.split.expert_rank, experts = ranks * each;
          std::vector<int64_t> begin{0};
          std::vector<double> sent;
          for (int64_t e = 0; e < experts; e++) {
            for (int64_t row = 0; row < rows_for(rank, e, trial); row++) sent.push_back(number(rank, e, row));
            begin.push_back(std::ssize(sent));
          }
          at::Tensor rows = at::empty({begin.back(), kWidth}, at::kDouble), numbers = at::empty({begin.back()}, at::kDouble);
          for (int64_t r = 0; r < begin.back(); r++) {
            numbers.mutable_data_ptr<double>()[r] = sent[static_cast<size_t>(r)];
            for (int64_t c = 0; c < kWidth; c++)
              rows.mutable_data_ptr<double>()[r * kWidth + c] = sent[static_cast<size_t>(r)] + 0.1 * static_cast<double>(c);
          }
          const ExpertTravel way(me.expert, begin);
          ASSERT_EQ(std::ssize(way.begin()), each + 1);
          std::vector<double> wanted;
          std::vector<int64_t> wanted_begin{0};
          for (int64_t e = rank * each; e < (rank + 1) * each; e++) {
            for (int64_t from = 0; from < ranks; from++)
              for (int64_t row = 0; row < rows_for(from, e, trial); row++) wanted.push_back(number(from, e, row));
            wanted_begin.push_back(std::ssize(wanted));
          }
          EXPECT_EQ(std::vector<int64_t>(way.begin().begin(), way.begin().end()), wanted_begin);
          const at::Tensor arrived = way.there(rows), few = way.there(numbers);
          ASSERT_EQ(arrived.size(0), std::ssize(wanted));
          ASSERT_EQ(arrived.size(1), kWidth);
          ASSERT_EQ(few.dim(), 1);
          for (int64_t r = 0; r < arrived.size(0); r++) {
            EXPECT_EQ(few.const_data_ptr<double>()[r], wanted[static_cast<size_t>(r)]);
            EXPECT_EQ(arrived.const_data_ptr<double>()[r * kWidth + 2], wanted[static_cast<size_t>(r)] + 0.2);
          }
          EXPECT_TRUE(way.back(arrived).equal(rows));
          EXPECT_TRUE(way.back(few).equal(numbers));
        }, ranks);
}

// No padding: what a rank sends is what its tokens want of others.
TEST(ExpertTravel, SendsExactlyWhatGoesElsewhere) {
  run_ranks(1, 1, ContextForm::ring, [&](const Ranks& me) {
    const int64_t rank = me.split.expert_rank;
    const std::vector<int64_t> begin{0, 3 + rank, 3 + rank, 10, 14};  // of four experts, two a rank
    const ExpertTravel way(me.expert, begin);
    auto* exchange = static_cast<ThreadExchange*>(me.expert);
    EXPECT_EQ(exchange->bytes, 2 * 8);  // how many rows for each of the other's experts
    exchange->bytes = 0;
    way.there(at::empty({14, kWidth}, at::kFloat));
    EXPECT_EQ(exchange->bytes, 4 * kWidth * (rank == 0 ? 14 - 3 : 4));
  }, 2);
}

}  // namespace
}  // namespace megalith
