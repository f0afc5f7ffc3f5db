// Ring attention over sequences that are cut. Keys and values are sent around the ring of ranks. Each rank's queries use
// those that have arrived while the next ones are sent. In backward, the gradients of keys and values are sent with them.

#include <algorithm>
#include <limits>

#include "model/kernels/rope.h"
#include "layout/cuts.h"
#include "model/layers/attention.h"
#include "model/positions.h"
#include "model/tensor_ops.h"

namespace megalith {
namespace {

// A matrix whose rows are some positions of each sequence, with the heads side by side.
struct Rows {
  const at::Tensor& x_NX;
  const std::vector<PositionRange>& runs;  // the positions
  int64_t sequences, head_dim;

  // Returns some heads of one run, as a view [B, heads, T, D].
  at::Tensor part(size_t run, int64_t first, int64_t heads) const {
    int64_t length = 0, begin = 0;
    for (size_t i = 0; i < runs.size(); i++) {
      length += runs[i].size();
      if (i < run) begin += runs[i].size();
    }
    return x_NX.view({sequences, length, x_NX.size(1) / head_dim, head_dim})
        .narrow(1, begin, runs[run].size())
        .narrow(2, first, heads)
        .transpose(1, 2);
  }
};

// Cuts a whole sight to the queries of one run and the keys of another. Keys count from the first one of their run. Returns
// true if any of these queries sees any of these keys.
bool sight_between(const kernels::Sight& whole, const Pass& pass, PositionRange queries, PositionRange keys,
                   kernels::Sight& out) {
  out = {};
  bool any = false;
  for (int64_t b = 0; b < pass.sequences; b++)
    for (int64_t t = queries.begin; t < queries.end; t++) {
      const auto at = static_cast<size_t>(b * pass.length + t);
      out.begin.push_back(std::clamp<int64_t>(whole.begin[at] - keys.begin, 0, keys.size()));
      out.end.push_back(std::clamp<int64_t>(whole.end[at] - keys.begin, 0, keys.size()));
      any = any || out.begin.back() < out.end.back();
    }
  return any;
}

// Pairs every run of this rank's queries with every run of the keys that are on this rank now. Calls
// work(index of the query run, index of the key run, their sight, their dropout) for each pair in which a query sees a key.
template <class Work>
void for_each_pair(const kernels::Sight& whole, const Pass& pass, const std::vector<PositionRange>& key_runs,
                   const kernels::ScoreDropout& dropout, const Work& work) {
  kernels::Sight sight;
  for (size_t i = 0; i < pass.runs.size(); i++)
    for (size_t j = 0; j < key_runs.size(); j++) {
      if (!sight_between(whole, pass, pass.runs[i], key_runs[j], sight)) continue;
      kernels::ScoreDropout here = dropout;
      here.first_query = pass.runs[i].begin;
      here.first_key = key_runs[j].begin;
      work(i, j, sight, here);
    }
}

// Returns the log-sum-exp of one run as [B, H, T]. `lse` has those of all runs, run by run.
at::Tensor lse_of(const at::Tensor& lse, const Pass& pass, int64_t heads, size_t run) {
  int64_t begin = 0;
  for (size_t i = 0; i < run; i++) begin += pass.runs[i].size();
  const int64_t each = pass.sequences * heads;
  return lse.narrow(0, begin * each, pass.runs[run].size() * each).view({pass.sequences, heads, pass.runs[run].size()});
}

// The keys and values that this rank has in each turn.
struct Turn {
  Exchange& ring;
  const Pass& pass;

  std::vector<PositionRange> runs(int64_t turn) const {
    const int64_t n = ring.size();
    return context_ranges(pass.length, n, ((ring.rank() - turn) % n + n) % n);
  }
  int64_t rows(int64_t turn) const {
    int64_t sum = 0;
    for (const PositionRange& run : runs(turn)) sum += run.size();
    return pass.sequences * sum;
  }
  // Starts to receive the keys and values of the next turn. Returns false if `turn` is the last.
  bool start_next(int64_t turn, const at::Tensor& kv, at::Tensor& next) const {
    if (turn + 1 == ring.size()) return false;
    next = tensor::empty({rows(turn + 1), kv.size(1)}, kv.options());
    ring.start_shift(kv, next);
    return true;
  }
};

}  // namespace

at::Tensor Attention::forward_ring(at::Tensor qkv_NX, const Pass& pass, Tape* tape) const {
  if (rope.theta > 0)
    kernels::rope_in_place(qkv_NX, heads + kv_heads, head_dim, positions_of(pass), rope, false);
  const auto type = c10::promoteTypes(qkv_NX.scalar_type(), at::kFloat);
  const at::TensorOptions wide = qkv_NX.options().dtype(type);
  at::Tensor output_NC = tensor::zeros({pass.tokens(), heads * head_dim}, wide);
  at::Tensor lse = tensor::full({pass.tokens() * heads}, -std::numeric_limits<double>::infinity(), wide);
  const at::Tensor qkv_wide = qkv_NX.to(type);
  const Rows q{qkv_wide, pass.runs, pass.sequences, head_dim}, o{output_NC, pass.runs, pass.sequences, head_dim};
  const kernels::Sight sight = sight_of(pass);
  const Turn turn{*context, pass};
  at::Tensor kv = qkv_NX.narrow(1, heads * head_dim, 2 * kv_heads * head_dim).contiguous(), next;
  for (int64_t t = 0; t < context->size(); t++) {
    const bool more = turn.start_next(t, kv, next);
    const std::vector<PositionRange> key_runs = turn.runs(t);
    const at::Tensor kv_wide = kv.to(type);
    const Rows keys{kv_wide, key_runs, pass.sequences, head_dim};
    for_each_pair(sight, pass, key_runs, dropout_of(pass),
                  [&](size_t i, size_t j, const kernels::Sight& between, const kernels::ScoreDropout& drop) {
                    kernels::attention_onto(q.part(i, 0, heads), keys.part(j, 0, kv_heads),
                                            keys.part(j, kv_heads, kv_heads), between, drop, o.part(i, 0, heads),
                                            lse_of(lse, pass, heads, i));
                  });
    if (more) context->finish();
    kv = std::move(next);
  }
  output_NC = output_NC.to(qkv_NX.scalar_type());
  if (tape) {
    tape->keep(std::move(qkv_NX));
    tape->keep(std::move(lse));
    tape->keep(output_NC);
  }
  return output_NC;
}

at::Tensor Attention::backward_ring(const at::Tensor& g_NC, const at::Tensor& output_NC, const Pass& pass,
                                    Tape& tape) const {
  at::Tensor lse = tape.take(), qkv_NX = tape.take();
  const auto type = lse.scalar_type();
  const at::Tensor qkv_wide = qkv_NX.to(type), g_wide = g_NC.to(type), o_wide = output_NC.to(type);
  at::Tensor g_qkv_NX = tensor::zeros(qkv_NX.sizes(), lse.options());
  const int64_t B = pass.sequences;
  const Rows q{qkv_wide, pass.runs, B, head_dim}, g{g_wide, pass.runs, B, head_dim}, o{o_wide, pass.runs, B, head_dim},
      gq{g_qkv_NX, pass.runs, B, head_dim};
  const kernels::Sight sight = sight_of(pass);
  const Turn turn{*context, pass};
  at::Tensor kv = qkv_NX.narrow(1, heads * head_dim, 2 * kv_heads * head_dim).contiguous(), next;
  at::Tensor g_kv = tensor::zeros(kv.sizes(), lse.options());
  for (int64_t t = 0; t < context->size(); t++) {
    const bool more = turn.start_next(t, kv, next);
    const std::vector<PositionRange> key_runs = turn.runs(t);
    {
      const at::Tensor kv_wide = kv.to(type);
      const Rows keys{kv_wide, key_runs, B, head_dim}, g_keys{g_kv, key_runs, B, head_dim};
      for_each_pair(sight, pass, key_runs, dropout_of(pass),
                    [&](size_t i, size_t j, const kernels::Sight& between, const kernels::ScoreDropout& drop) {
                      kernels::attention_backward_onto(
                          g.part(i, 0, heads),
                          {q.part(i, 0, heads), keys.part(j, 0, kv_heads), keys.part(j, kv_heads, kv_heads)},
                          {o.part(i, 0, heads), lse_of(lse, pass, heads, i)}, between, drop,
                          {gq.part(i, 0, heads), g_keys.part(j, 0, kv_heads), g_keys.part(j, kv_heads, kv_heads)});
                    });
    }
    if (more) context->finish();
    kv = std::move(next);
    // Also after the last turn: the gradients then need one more shift to the rank that owns them.
    at::Tensor arriving = tensor::empty({turn.rows(t + 1), g_kv.size(1)}, g_kv.options());
    context->start_shift(g_kv, arriving);
    context->finish();
    g_kv = std::move(arriving);
  }
  g_qkv_NX.narrow(1, heads * head_dim, g_kv.size(1)).copy_(g_kv);
  g_qkv_NX = g_qkv_NX.to(qkv_NX.scalar_type());
  if (rope.theta > 0)
    kernels::rope_in_place(g_qkv_NX, heads + kv_heads, head_dim, positions_of(pass), rope, true);
  return g_qkv_NX;
}

}  // namespace megalith
