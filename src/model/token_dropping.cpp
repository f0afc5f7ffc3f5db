#include "model/token_dropping.h"

#include <ATen/ops/empty.h>

#include "base/error.h"
#include "base/philox.h"
#include "model/positions.h"

namespace megalith {

bool drops_tokens(const Pass& pass, int64_t layer) {
  return pass.dropping.kept > 0 && pass.dropping.kept < pass.length &&
         std::ranges::binary_search(pass.dropping.layers, layer);
}

// The tokens with the smallest of independent random numbers are a uniform choice; protected ones come before all others.
at::Tensor kept_rows(const Pass& pass, int64_t layer) {
  const int64_t T = pass.length, K = pass.dropping.kept;
  const Philox random(pass.seed, RandomUse::token_dropping, static_cast<uint64_t>(layer), static_cast<uint64_t>(pass.step));
  at::Tensor rows_K = at::empty({pass.sequences * K}, at::kLong);
  auto* out = rows_K.mutable_data_ptr<int64_t>();
  std::vector<uint64_t> lots(static_cast<size_t>(T));  // protected?, number, position
  for (int64_t b = 0; b < pass.sequences; b++) {
    const int64_t first = (pass.first_sequence + b) * ((T + 3) / 4);  // blocks of four numbers
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

Pass pass_of_rows(const Pass& pass, const at::Tensor& rows_K) {
  const int64_t B = pass.sequences, T = pass.length, K = rows_K.numel() / B;
  const auto* rows = rows_K.const_data_ptr<int64_t>();
  const std::vector<int64_t> positions = positions_of_whole(pass);
  Pass kept = pass;
  kept.runs.clear();
  kept.first_row = 0;
  kept.last_row = -1;
  kept.length = K;
  kept.dropping = {};
  kept.ids_N.reset();  // of the embedding and the head, which drop nothing
  kept.targets_N.reset();
  kept.positions_N.resize(static_cast<size_t>(B * K));
  for (int64_t k = 0; k < B * K; k++) kept.positions_N[static_cast<size_t>(k)] = positions[static_cast<size_t>(rows[k])];
  // How many kept rows of a sequence come before position `t` of it.
  auto before = [&](int64_t b, int64_t t) {
    return std::lower_bound(rows + b * K, rows + (b + 1) * K, b * T + t) - (rows + b * K);
  };
  for (int64_t b = 0; b < std::ssize(pass.prefix_B); b++)
    kept.prefix_B[static_cast<size_t>(b)] = before(b, pass.prefix_B[static_cast<size_t>(b)]);
  if (!pass.document_begin_N.defined()) return kept;
  const auto* begin = pass.document_begin_N.const_data_ptr<int64_t>();
  kept.document_begin_N = at::empty({B * K}, at::kLong);
  for (int64_t k = 0; k < B * K; k++)
    kept.document_begin_N.mutable_data_ptr<int64_t>()[k] = before(k / K, begin[rows[k]]);
  return kept;
}

}  // namespace megalith
