// Random layer-wise token dropping: a layer processes a random part of the tokens of each sequence, the rest pass by.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/ops/index_select.h>

#include <algorithm>
#include <utility>

#include "model/pass.h"
#include "model/tape.h"

namespace megalith {

// Whether a layer drops tokens in this pass.
bool drops_tokens(const Pass& pass, int64_t layer);

// Rows of the activation that a layer keeps: pass.dropping.kept of each sequence, rising, B * kept of them. A function
// of (seed, step, layer, number of the sequence in the step's batch) and of which positions are protected: the same for
// every cut of the batch, and again in backward.
at::Tensor kept_rows(const Pass& pass, int64_t layer);

// The pass as the layer sees it: only these rows, in their order, at their true positions; prefixes and documents are
// those of the kept tokens.
Pass pass_of_rows(const Pass& pass, const at::Tensor& rows_K);

// A layer that can drop. Nothing of it is on the tape but what the layer itself leaves there, of the kept rows.
template <class Layer>
class Dropping : public Layer {
 public:
  using Layer::Layer;

  at::Tensor forward(const at::Tensor& x_NC, const Pass& pass, Tape* tape) override {
    if (!drops_tokens(pass, this->spec_.layer)) return Layer::forward(x_NC, pass, tape);
    const at::Tensor rows_K = kept_rows(pass, this->spec_.layer);
    at::Tensor y_KC = Layer::forward(x_NC.index_select(0, rows_K), pass_of_rows(pass, rows_K), tape);
    return x_NC.clone().index_copy_(0, rows_K, y_KC);
  }

  void remake(const at::Tensor& x_NC, const Pass& pass, Tape& tape) override {
    if (!drops_tokens(pass, this->spec_.layer)) return Layer::remake(x_NC, pass, tape);
    const at::Tensor rows_K = kept_rows(pass, this->spec_.layer);
    Layer::remake(tape.empty() ? x_NC.index_select(0, rows_K) : at::Tensor(), pass_of_rows(pass, rows_K), tape);
  }

  at::Tensor backward(const at::Tensor& g_NC, const Pass& pass, Tape& tape) override {
    if (!drops_tokens(pass, this->spec_.layer)) return Layer::backward(g_NC, pass, tape);
    const at::Tensor rows_K = kept_rows(pass, this->spec_.layer);
    at::Tensor gx_KC = Layer::backward(g_NC.index_select(0, rows_K), pass_of_rows(pass, rows_K), tape);
    return g_NC.clone().index_copy_(0, rows_K, gx_KC);
  }
};

}  // namespace megalith
