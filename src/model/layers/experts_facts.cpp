#include "model/layers/experts_facts.h"

#include <algorithm>

#include "model/layers/expert_balance.h"
#include "model/routing/groups.h"

namespace megalith {
namespace {

// The numbers of rows that a rank works on.
struct ExpertRows {
  int64_t R;  // rows of this rank's tokens
  int64_t H;  // rows that the experts of this rank receive, at most
};

ExpertRows rows_of(const RankSizes& r) {
  const Experts& x = r.s.experts;
  const int64_t ranks = r.mesh.size(Axis::expert), sequences = r.m.sequences, length = r.m.length;
  // `rows` is the number of rows for whole sequences. The tokens of this rank have at most `most` rows each.
  const auto here = [&](int64_t rows, int64_t most) { return std::min(rows, r.N * most); };
  const int64_t a_token = x.router == Router::expert_choice ? x.count : x.top_k;
  return {here(most_rows(x, sequences, length), a_token),
          here(most_rows(x, sequences, length, ranks), ranks * std::min(a_token, x.count / ranks))};
}

// Adds the memory that backward and forward need besides the kept tensors.
void add_workspace(HalfFacts& f, const RankSizes& r, const ExpertRows& rows_here, int64_t logits) {
  const Experts& x = r.s.experts;
  const auto [R, H] = rows_here;
  const int64_t e = r.e, N = r.N, C = r.C, ranks = r.mesh.size(Axis::expert);
  const int64_t F = x.ffn / r.mesh.size(Axis::tensor), S = x.shared / r.mesh.size(Axis::tensor), W = r.m.tokens();
  // The 16-bit product of a weight gradient, and the temporaries of the activation's ATen form.
  const bool narrow = e < 4;
  const int64_t gradient = narrow ? 6 * F * 2 * C : 0, terms = narrow ? e * H * 9 * F : 0, wide = narrow ? 4 * N * C : 0;
  // First there are the rows of the gradient and of the activations. Then there are the rows of the input and of its
  // gradient. Finally there are the gradients of the router and of the shared expert, and the summed rows. With ranks,
  // the rows that are sent back replace the summed rows. The lists of the router are on the heap.
  const int64_t rows = e * H * (C + F) + std::max(gradient, terms);
  const int64_t beside = ranks > 1 ? e * (R + H) * C : e * N * C, came = e * (R + (ranks > 1 ? 2 : 1) * N) * C;
  const int64_t routed = e * N * C + 2 * wide + (x.jitter > 0 ? 4 * N * C : 0) + logits;
  const int64_t shared = S > 0 ? e * N * (C + std::max(S * (narrow ? 10 : 1), 2 * C)) : 0;
  const int64_t back = std::max(came, beside + std::max(routed, shared));
  // While rows are sent: the sent and the received rows, or the received rows in both orders.
  const int64_t travel = ranks > 1 ? e * (H + std::max(R, H)) * C : 0;
  // Borrowed experts with their gradients, and one gradient that is returned.
  const int64_t loans = ranks > 1 ? 2 * C * F * (std::min(kMostShadows, x.count - x.count / ranks) * (e + 4) + 4) : 0;
  f.workspace_bytes = std::max({rows, back - e * H * 2 * F, e * R * C, travel}) + loans + W * x.count * 32;
  f.activation_bytes = f.workspace_bytes;
  f.deferring_bytes = e * H * (F + 2 * C) + std::max({terms, back, travel}) + loans + W * x.count * 32;
}

}  // namespace

HalfFacts experts_facts(const RankSizes& r) {
  const Experts& x = r.s.experts;
  const ExpertRows rows = rows_of(r);
  const auto [R, H] = rows;
  const int64_t e = r.e, N = r.N, C = r.C, ranks = r.mesh.size(Axis::expert), W = r.m.tokens();  // W: tokens of whole sequences
  const int64_t F = x.ffn / r.mesh.size(Axis::tensor), S = x.shared / r.mesh.size(Axis::tensor), width = router_width(x);
  const auto product = [](int64_t n, int64_t in, int64_t out) { return 2.0 * static_cast<double>(n * in * out); };
  HalfFacts f;
  f.routes = true;
  const double output_flop = product(R, F, C) + product(N, S, C);
  f.flop = product(N, C, width) + product(R, C, 2 * F) + product(N, C, S > 0 ? 2 * S + 1 : 0) + output_flop;
  const int64_t logits = 4 * W * width;
  f.saved_bytes = logits + H * r.kept.row(2 * F) + (S > 0 ? N * r.kept.row(2 * S) : 0);
  f.plain_bytes = logits + e * (H * 2 * F + N * 2 * S);
  f.unpacked_bytes = f.plain_bytes - f.saved_bytes;
  add_workspace(f, r, rows, logits);
  // Inputs and output gradients of both products, for the rows and for the shared expert.
  f.deferred_bytes = f.left_bytes = e * (H * (3 * F + 2 * C) + (S > 0 ? N * (3 * S + 2 * C) : 0));
  f.weight_rows = 2 * (std::max(x.ffn, x.shared) / r.mesh.size(Axis::tensor));
  // Rows that are sent to the experts and back, the activation, and the router's input.
  f.touched_bytes = e * (R * (4 * C + 4 * F) + N * (3 * C + 4 * S)) + 6 * logits;
  if (ranks > 1) {
    // Rows sent to the experts and back: copied, and reordered.
    f.touched_bytes += e * R * 8 * C;
    f.expert_bytes = e * R * C / ranks * (ranks - 1);
  }
  f.output = {output_flop, f.touched_bytes / 2};
  // Logits are gathered along the context axis.
  f.context_bytes = r.mesh.size(Axis::context) > 1 ? 4 * N * width * (r.mesh.size(Axis::context) - 1) : 0;
  return f;
}

}  // namespace megalith
