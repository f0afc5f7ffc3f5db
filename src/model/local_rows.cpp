#include "model/local_rows.h"

#include "layout/cuts.h"
#include "model/layers/sequence_parallel.h"
#include "model/tensor_ops.h"

namespace megalith {
namespace {

// Appends the rows of the whole micro-batch that a rank of the context axis holds, in the order of that rank.
void append_rows(const Pass& pass, const std::vector<PositionRange>& runs, std::vector<int64_t>& rows) {
  for (int64_t b = 0; b < pass.sequences; b++)
    for (const PositionRange& run : runs)
      for (int64_t t = run.begin; t < run.end; t++) rows.push_back(b * pass.length + t);
}

}  // namespace

void set_local_rows(Pass& pass, const Mesh& mesh) {
  pass.runs.clear();
  if (mesh.size(Axis::context) > 1) pass.runs = context_ranges(pass.length, mesh.size(Axis::context), mesh.coordinate(Axis::context));
  const int64_t rows = pass.tokens();
  pass.first_row = cut_point(rows, mesh.size(Axis::tensor), mesh.coordinate(Axis::tensor));
  pass.last_row = cut_point(rows, mesh.size(Axis::tensor), mesh.coordinate(Axis::tensor) + 1);
}

std::vector<int64_t> rows_of_sequences(const Pass& pass) {
  std::vector<int64_t> rows;
  append_rows(pass, pass.runs, rows);
  return rows;
}

std::vector<int64_t> rows_of_sequences(const Pass& pass, int64_t ranks, int64_t rank) {
  std::vector<int64_t> rows;
  append_rows(pass, context_ranges(pass.length, ranks, rank), rows);
  return rows;
}

std::vector<int64_t> numbers_here(const Pass& pass) {
  std::vector<int64_t> rows;
  for_each_row_run(pass, [&](int64_t, int64_t row, int64_t count) {
    for (int64_t i = 0; i < count; i++) rows.push_back(row - pass.first_sequence * pass.length + i);
  });
  return rows;
}

Pass local_pass(Pass whole, const Mesh& mesh) {
  Pass pass = std::move(whole);
  set_local_rows(pass, mesh);
  if (pass.runs.empty()) return pass;
  const at::Tensor here = tensor::from_values(rows_of_sequences(pass));
  pass.ids_N = pass.ids_N.index_select(0, here);
  if (pass.targets_N.defined()) pass.targets_N = pass.targets_N.index_select(0, here);
  return pass;
}

at::Tensor gather_whole(const at::Tensor& x_SC, const Pass& pass, const Exchanges& exchanges) {
  at::Tensor x_NC = SequenceParallel{exchanges.tensor}.all_gather(x_SC, pass.tokens());
  if (!exchanges.context) return x_NC;
  std::vector<int64_t> rows, cuts{0};  // rows of all ranks, in the order of the ranks
  for (int64_t r = 0; r < exchanges.context->size(); r++) {
    append_rows(pass, context_ranges(pass.length, exchanges.context->size(), r), rows);
    cuts.push_back(static_cast<int64_t>(rows.size()));
  }
  const at::Tensor by_rank = gather_rows(exchanges.context, x_NC, cuts);
  return tensor::empty_like(by_rank).index_copy_(0, tensor::from_values(rows), by_rank);
}

}  // namespace megalith
