// The rows of a micro-batch that a rank holds, and how to gather all rows.
#pragma once
#include <algorithm>

#include "layout/cuts.h"
#include "model/exchange.h"
#include "model/pass.h"

namespace megalith {

// Returns the pass of one rank, made from a pass of whole sequences. It has the ids and targets of this rank's positions.
Pass local_pass(Pass whole, const Mesh& mesh);
// The same for a pass without ids and targets: only sets which rows are on this rank.
void set_local_rows(Pass& pass, const Mesh& mesh);

// Splits the rows that this rank holds between products into runs that are also contiguous in the step's batch. Calls
// run(first row on this rank, its row in the batch of whole sequences, number of rows). Sequence s of the batch has rows
// [s * length, (s + 1) * length).
template <class Run>
void for_each_row_run(const Pass& pass, const Run& run) {
  const int64_t first = pass.first_row, last = first + pass.rows(), begin_of_all = pass.first_sequence * pass.length;
  if (pass.runs.empty()) return run(int64_t{0}, begin_of_all + first, last - first);
  const int64_t length = pass.length_here();
  for (int64_t b = length == 0 ? 0 : first / length; b < pass.sequences && b * length < last; b++) {
    int64_t at = b * length;  // the row, of N, at which the run begins
    for (const PositionRange& positions : pass.runs) {
      const int64_t from = std::max(first, at), to = std::min(last, at + positions.size());
      if (from < to) run(from - first, begin_of_all + b * pass.length + positions.begin + from - at, to - from);
      at += positions.size();
    }
  }
}

// Returns all rows that a rank of the context axis holds, as row numbers in the whole micro-batch, rising. The first form is
// for this rank, the second for rank `rank` of `ranks`.
std::vector<int64_t> rows_of_sequences(const Pass& pass);
std::vector<int64_t> rows_of_sequences(const Pass& pass, int64_t ranks, int64_t rank);
// The same for the rows that this rank holds between products.
std::vector<int64_t> numbers_here(const Pass& pass);

// Returns the activation of the whole micro-batch, in the order of the batch. x_SC has the rows of this rank. If no axis
// splits the rows, returns x_SC.
at::Tensor gather_whole(const at::Tensor& x_SC, const Pass& pass, const Exchanges& exchanges);

}  // namespace megalith
