#include "model/token_dropping.h"

#include <algorithm>

#include "base/error.h"
#include "base/philox.h"
#include "layout/cuts.h"
#include "model/kernels/row_copies.h"
#include "model/layers/sequence_parallel.h"
#include "model/positions.h"
#include "model/tensor_ops.h"

namespace megalith {

bool drops_tokens(const Pass& pass, int64_t layer) {
  return pass.dropping.kept > 0 && pass.dropping.kept < pass.length &&
         std::ranges::binary_search(pass.dropping.layers, layer);
}

// Keeps the tokens with the smallest random numbers, which is a uniform choice. Protected tokens come before all others.
std::vector<int64_t> kept_rows(const Pass& pass, int64_t layer) {
  const int64_t T = pass.length, K = pass.dropping.kept;
  const Philox random(pass.seed, RandomUse::token_dropping, static_cast<uint64_t>(layer), static_cast<uint64_t>(pass.step));
  std::vector<int64_t> rows_K(static_cast<size_t>(pass.sequences * K));
  auto out = rows_K.begin();
  std::vector<uint64_t> lots(static_cast<size_t>(T));  // not protected, random number, position
  for (int64_t b = 0; b < pass.sequences; b++) {
    // The sequence's first block of four random numbers.
    const int64_t first = (pass.first_sequence + b) * ((T + 3) / 4);
    auto four = random.block(static_cast<uint64_t>(first));
    for (int64_t t = 0; t < T; t++) {
      if (t > 0 && t % 4 == 0) four = random.block(static_cast<uint64_t>(first + t / 4));
      const uint64_t others = pass.dropping.always.empty() || !pass.dropping.always[static_cast<size_t>(b * T + t)];
      const uint32_t number = four[static_cast<size_t>(t % 4)];
      lots[static_cast<size_t>(t)] = others << 63 | static_cast<uint64_t>(number >> 1) << 32 | static_cast<uint64_t>(t);
    }
    std::nth_element(lots.begin(), lots.begin() + K, lots.end());
    for (int64_t k = 0; k < K; k++) *out++ = b * T + static_cast<int64_t>(lots[static_cast<size_t>(k)] & 0xFFFFFFFF);
    std::sort(out - K, out);
  }
  return rows_K;
}

Pass pass_of_rows(const Pass& pass, std::span<const int64_t> rows_K) {
  const int64_t B = pass.sequences, T = pass.length, K = std::ssize(rows_K) / B;
  const int64_t* rows = rows_K.data();
  const std::vector<int64_t> positions = positions_of_whole(pass);
  Pass kept = pass;
  kept.runs.clear();
  kept.first_row = 0;
  kept.last_row = -1;
  kept.length = K;
  kept.dropping = {};
  kept.ids_N.reset();  // only the embedding and the head use the ids, and these two blocks drop no tokens
  kept.targets_N.reset();
  kept.positions_N.resize(static_cast<size_t>(B * K));
  for (int64_t k = 0; k < B * K; k++) kept.positions_N[static_cast<size_t>(k)] = positions[static_cast<size_t>(rows[k])];
  // Returns how many kept rows of sequence `b` come before its position `t`.
  auto before = [&](int64_t b, int64_t t) {
    return std::lower_bound(rows + b * K, rows + (b + 1) * K, b * T + t) - (rows + b * K);
  };
  for (int64_t b = 0; b < std::ssize(pass.prefix_B); b++)
    kept.prefix_B[static_cast<size_t>(b)] = before(b, pass.prefix_B[static_cast<size_t>(b)]);
  if (!pass.document_begin_N.defined()) return kept;
  const auto* begin = pass.document_begin_N.const_data_ptr<int64_t>();
  kept.document_begin_N = tensor::empty({B * K}, at::kLong);
  for (int64_t k = 0; k < B * K; k++)
    kept.document_begin_N.mutable_data_ptr<int64_t>()[k] = before(k / K, begin[rows[k]]);
  return kept;
}

KeptRows::KeptRows(const Pass& pass, int64_t layer, const Exchanges& exchanges) : exchanges_(exchanges) {
  std::vector<int64_t> rows_K = kept_rows(pass, layer);
  kept_ = pass_of_rows(pass, rows_K);
  const Mesh& mesh = exchanges.mesh;
  set_local_rows(kept_, mesh);
  if (!mesh.divides_rows()) {
    here_ = std::move(rows_K);
    return;
  }
  // By row: its number among the kept rows, or -1 if it is dropped.
  std::vector<int64_t> number(static_cast<size_t>(pass.sequences * pass.length), -1);
  for (size_t k = 0; k < rows_K.size(); k++) number[static_cast<size_t>(rows_K[k])] = static_cast<int64_t>(k);
  std::vector<int64_t> comes(rows_K.size()), returns(rows_K.size());  // by number: its place among the gathered rows
  for (int64_t context = 0, come = 0, back = 0; context < mesh.size(Axis::context); context++) {
    context_cuts_.push_back(come);
    for (int64_t row : rows_of_sequences(pass, mesh.size(Axis::context), context))
      if (const int64_t k = number[static_cast<size_t>(row)]; k >= 0) comes[static_cast<size_t>(k)] = come++;
    processed_cuts_.push_back(back);
    for (int64_t k : rows_of_sequences(kept_, mesh.size(Axis::context), context)) returns[static_cast<size_t>(k)] = back++;
  }
  context_cuts_.push_back(std::ssize(rows_K));
  processed_cuts_.push_back(std::ssize(rows_K));
  for (int64_t k : numbers_here(kept_)) taken_.push_back(comes[static_cast<size_t>(k)]);

  const std::vector<int64_t> rows = rows_of_sequences(pass, mesh.size(Axis::context), mesh.coordinate(Axis::context));
  const std::vector<int64_t> cuts = cut_points(std::ssize(rows), mesh.size(Axis::tensor));
  int64_t before = 0;  // kept rows of this context rank so far
  for (int64_t tensor = 0; tensor < mesh.size(Axis::tensor); tensor++) {
    tensor_cuts_.push_back(before);
    const int64_t begin = cuts[static_cast<size_t>(tensor)], end = cuts[static_cast<size_t>(tensor) + 1];
    for (int64_t row = begin; row < end; row++) {
      const int64_t k = number[static_cast<size_t>(rows[static_cast<size_t>(row)])];
      if (k < 0) continue;
      before++;
      if (tensor != mesh.coordinate(Axis::tensor)) continue;
      here_.push_back(row - begin);
      mine_.push_back(returns[static_cast<size_t>(k)]);
    }
  }
  tensor_cuts_.push_back(before);
}

at::Tensor KeptRows::take(const at::Tensor& x_SC) const {
  at::Tensor x = kernels::gather_rows(x_SC, here_);
  if (!exchanges_.mesh.divides_rows()) return x;
  x = gather_rows(exchanges_.tensor, x, tensor_cuts_);
  x = gather_rows(exchanges_.context, x, context_cuts_);
  return kernels::gather_rows(x, taken_);
}

at::Tensor KeptRows::put(const at::Tensor& x_SC, at::Tensor y) const {
  if (!exchanges_.mesh.divides_rows()) return kernels::replace_rows(x_SC, here_, y);
  y = SequenceParallel{exchanges_.tensor}.all_gather(y, kept_.tokens());
  y = gather_rows(exchanges_.context, y, processed_cuts_);
  y = kernels::gather_rows(y, mine_);
  return kernels::replace_rows(x_SC, here_, y);
}

}  // namespace megalith
