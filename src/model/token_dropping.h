// Random layer-wise token dropping: a layer processes a random part of the tokens of each sequence, the rest pass by.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "model/local_rows.h"
#include "model/tape.h"

namespace megalith {

// Whether a layer drops tokens in this pass.
bool drops_tokens(const Pass& pass, int64_t layer);

// Rows of the activation that a layer keeps: pass.dropping.kept of each sequence, rising, B * kept of them. A function
// of (seed, step, layer, number of the sequence in the step's batch) and of which positions are protected: the same for
// every cut of the batch, and again in backward.
std::vector<int64_t> kept_rows(const Pass& pass, int64_t layer);

// The pass as the layer sees it: only these rows, in their order, at their true positions; prefixes and documents are
// those of the kept tokens. Of whole sequences.
Pass pass_of_rows(const Pass& pass, std::span<const int64_t> rows_K);

// The way of the rows that a layer keeps to those who process them, and back to where they were. Where rows are split over
// ranks, those that are kept lie about unevenly; they are shared out evenly again, and no others travel. Borrows `exchanges`.
class KeptRows {
 public:
  KeptRows(const Pass& pass, int64_t layer, const Exchanges& exchanges);

  const Pass& pass() const { return kept_; }     // as the layer sees it
  at::Tensor take(const at::Tensor& x_SC) const;  // of the rows here and on other ranks, those that this rank processes
  // The rows here, with what was made of those that were kept among the others as they are.
  at::Tensor put(const at::Tensor& x_SC, at::Tensor y) const;

 private:
  const Exchanges& exchanges_;
  Pass kept_;
  std::vector<int64_t> here_;  // kept rows that are here, by their place among all that are here, rising
  // With ranks, of all kept rows as they come from who has them: where each rank's begin, and which this rank processes.
  std::vector<int64_t> tensor_cuts_, context_cuts_, taken_;
  // And as they come back from who processed them: where each context rank's begin, and which belong here.
  std::vector<int64_t> processed_cuts_, mine_;
};

// A layer that can drop. Nothing of it is on the tape but what the layer itself leaves there, of the kept rows.
template <class Layer>
class Dropping : public Layer {
 public:
  using Layer::Layer;

  at::Tensor forward(const at::Tensor& x_NC, const Pass& pass, Tape* tape) override {
    if (!drops_tokens(pass, this->spec_.layer)) return Layer::forward(x_NC, pass, tape);
    const KeptRows kept(pass, this->spec_.layer, this->exchanges_);
    return kept.put(x_NC, Layer::forward(kept.take(x_NC), kept.pass(), tape));
  }

  void recompute(const at::Tensor& x_NC, const Pass& pass, Tape& tape) override {
    if (!drops_tokens(pass, this->spec_.layer)) return Layer::recompute(x_NC, pass, tape);
    const KeptRows kept(pass, this->spec_.layer, this->exchanges_);
    Layer::recompute(tape.empty() ? kept.take(x_NC) : at::Tensor(), kept.pass(), tape);
  }

  at::Tensor backward(const at::Tensor& g_NC, const Pass& pass, Tape& tape) override {
    if (!drops_tokens(pass, this->spec_.layer)) return Layer::backward(g_NC, pass, tape);
    const KeptRows kept(pass, this->spec_.layer, this->exchanges_);
    return kept.put(g_NC, Layer::backward(kept.take(g_NC), kept.pass(), tape));
  }
};

}  // namespace megalith
