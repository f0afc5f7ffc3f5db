// What a rank holds of a micro-batch, and the way to all of it.
#pragma once
#include <algorithm>

#include "layout/cuts.h"
#include "model/exchange.h"
#include "model/pass.h"

namespace megalith {

// The pass of a rank, from that of whole sequences: ids and targets of the positions that are here.
Pass local_pass(Pass whole, const Mesh& mesh);
// The same for a pass without ids and targets: says what is here.
void set_local_rows(Pass& pass, const Mesh& mesh);

// The rows between products that are here, as runs that follow each other in the step's batch, too:
// run(first row here, its row in a batch of whole sequences, rows). Sequence s of the batch has rows
// [s * length, (s + 1) * length).
template <class Run>
void for_each_row_run(const Pass& pass, const Run& run) {
  const int64_t first = pass.first_row, last = first + pass.rows(), begin_of_all = pass.first_sequence * pass.length;
  if (pass.runs.empty()) return run(int64_t{0}, begin_of_all + first, last - first);
  const int64_t length = pass.length_here();
  for (int64_t b = length == 0 ? 0 : first / length; b < pass.sequences && b * length < last; b++) {
    int64_t at = b * length;  // row of N at which the run begins
    for (const PositionRange& positions : pass.runs) {
      const int64_t from = std::max(first, at), to = std::min(last, at + positions.size());
      if (from < to) run(from - first, begin_of_all + b * pass.length + positions.begin + from - at, to - from);
      at += positions.size();
    }
  }
}

// Of the rows that a rank of the context axis holds, all of them: their rows in the whole micro-batch, rising. This rank's,
// or those of one of `ranks`.
std::vector<int64_t> rows_of_sequences(const Pass& pass);
std::vector<int64_t> rows_of_sequences(const Pass& pass, int64_t ranks, int64_t rank);
// The same of those between products.
std::vector<int64_t> numbers_here(const Pass& pass);

// The activation of the whole micro-batch, of which x_SC is here, in the order of the batch. Without a split that is x_SC.
at::Tensor gather_whole(const at::Tensor& x_SC, const Pass& pass, const Exchanges& exchanges);

}  // namespace megalith
