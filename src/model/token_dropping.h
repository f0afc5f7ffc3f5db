// Random layer-wise token dropping: a layer processes a random part of the tokens of each sequence. The others skip it.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "model/local_rows.h"
#include "model/tape.h"

namespace megalith {

// True if the layer drops tokens in this pass.
bool drops_tokens(const Pass& pass, int64_t layer);

// Returns the rows of the activation that a layer keeps, rising: pass.dropping.kept of each sequence, B * kept in all. They
// depend only on the seed, the step, the layer, the number of the sequence in the step's batch, and the protected positions.
// So they are the same for every cut of the batch, and in backward.
std::vector<int64_t> kept_rows(const Pass& pass, int64_t layer);

// Returns the pass as the layer sees it: only these rows, in their order, at their true positions. Prefixes and documents
// are those of the kept tokens. The result describes whole sequences.
Pass pass_of_rows(const Pass& pass, std::span<const int64_t> rows_K);

// Sends the rows that a layer keeps to the ranks that process them, and back to their places. If rows are split over ranks,
// some ranks hold more kept rows than others. So kept rows are redistributed evenly. Other rows are not sent. Borrows
// `exchanges`.
class KeptRows {
 public:
  KeptRows(const Pass& pass, int64_t layer, const Exchanges& exchanges);

  const Pass& pass() const { return kept_; }     // as the layer sees it
  at::Tensor take(const at::Tensor& x_SC) const;  // returns the rows that this rank processes, from all ranks
  // Returns the rows of this rank: the results of the kept rows (`y`), and the other rows of x_SC unchanged.
  at::Tensor put(const at::Tensor& x_SC, at::Tensor y) const;

 private:
  const Exchanges& exchanges_;
  Pass kept_;
  std::vector<int64_t> here_;  // kept rows of this rank, as indices into all its rows, rising
  // Only with ranks. Kept rows are gathered in rank order: offsets of each rank's rows, and the rows that this rank
  // processes.
  std::vector<int64_t> tensor_cuts_, context_cuts_, taken_;
  // The same for the gathered results: offsets of the rows of each context rank, and the rows that belong to this rank.
  std::vector<int64_t> processed_cuts_, mine_;
};

// A layer that can drop tokens. The tape holds only what the layer itself keeps, for the kept rows.
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
