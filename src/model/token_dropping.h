// Random layer-wise token dropping: a layer processes a random part of the tokens of each sequence, the rest pass by.
#pragma once
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <utility>

#include "model/kernels/row_copies.h"
#include "model/share.h"
#include "model/tape.h"

namespace megalith {

// Whether a layer drops tokens in this pass.
bool drops_tokens(const Pass& pass, int64_t layer);

// Rows of the activation that a layer keeps: pass.dropping.kept of each sequence, rising, B * kept of them. A function
// of (seed, step, layer, number of the sequence in the step's batch) and of which positions are protected: the same for
// every cut of the batch, and again in backward.
at::Tensor kept_rows(const Pass& pass, int64_t layer);

// The pass as the layer sees it: only these rows, in their order, at their true positions; prefixes and documents are
// those of the kept tokens. Of whole sequences.
Pass pass_of_rows(const Pass& pass, const at::Tensor& rows_K);

// A layer that can drop. Nothing of it is on the tape but what the layer itself leaves there, of the kept rows. Where
// rows are split over ranks, those that are kept are shared out evenly again.
template <class Layer>
class Dropping : public Layer {
 public:
  using Layer::Layer;

  at::Tensor forward(const at::Tensor& x_NC, const Pass& pass, Tape* tape) override {
    if (!drops_tokens(pass, this->spec_.layer)) return Layer::forward(x_NC, pass, tape);
    return on_kept_rows(x_NC, pass,
                        [&](const at::Tensor& x_KC, const Pass& kept) { return Layer::forward(x_KC, kept, tape); });
  }

  void remake(const at::Tensor& x_NC, const Pass& pass, Tape& tape) override {
    if (!drops_tokens(pass, this->spec_.layer)) return Layer::remake(x_NC, pass, tape);
    const Ranks& ranks = this->ranks_;
    const at::Tensor rows_K = kept_rows(pass, this->spec_.layer);
    Pass kept = pass_of_rows(pass, rows_K);
    hold_share(kept, ranks.split);
    at::Tensor x_KC;
    if (tape.empty()) x_KC = rows_of(gather_whole(x_NC, pass, ranks), rows_here(rows_K, kept, ranks.split));
    Layer::remake(x_KC, kept, tape);
  }

  at::Tensor backward(const at::Tensor& g_NC, const Pass& pass, Tape& tape) override {
    if (!drops_tokens(pass, this->spec_.layer)) return Layer::backward(g_NC, pass, tape);
    return on_kept_rows(g_NC, pass,
                        [&](const at::Tensor& g_KC, const Pass& kept) { return Layer::backward(g_KC, kept, tape); });
  }

 private:
  static at::Tensor rows_of(const at::Tensor& whole, const at::Tensor& rows) {
    return kernels::gather_rows(whole, kernels::row_numbers(rows));
  }
  // What `work` makes of the rows that are kept, among the others as they are.
  template <class Work>
  at::Tensor on_kept_rows(const at::Tensor& x_NC, const Pass& pass, const Work& work) const {
    const Ranks& ranks = this->ranks_;
    const at::Tensor rows_K = kept_rows(pass, this->spec_.layer), whole = gather_whole(x_NC, pass, ranks);
    Pass kept = pass_of_rows(pass, rows_K);
    hold_share(kept, ranks.split);
    const at::Tensor here = rows_here(rows_K, kept, ranks.split);
    const at::Tensor y_KC = gather_whole(work(rows_of(whole, here), kept), kept, ranks);
    return rows_here(kernels::replace_rows(whole, kernels::row_numbers(rows_K), y_KC), pass, ranks.split);
  }
};

}  // namespace megalith
