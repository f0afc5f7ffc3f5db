// The feed-forward half of a layer with experts: a router sends every token to some of many SwiGLU networks, whose
// weighted results add up. Rows are sorted by expert once; there is no padding. The router computes in float32 (double in
// double), from float32 weights, whatever the rest computes in.
//
// Ranks of the expert axis route their own tokens, whose rows travel to the experts (token_dispatch.h). Those of the context
// axis put their logits together, route all tokens of their sequences alike, and send their own. Those of the tensor axis
// have some of every expert's width: all do the same with all rows, and results add up. What they go back with is linear in
// what each has, so that gradients add up, too.
//
// Of a token's way only the router's logits are kept, besides pre-activations: where rows go follows from them.
#pragma once
#include <vector>

#include "families/model_shape.h"
#include "model/layers/grouped_linear.h"
#include "model/pass.h"
#include "model/tape.h"

namespace megalith {

// One more expert that all tokens pass, weighted by the sigmoid of a Linear with one output.
struct SharedExpert {
  Linear weight, gate_up, down;
  explicit operator bool() const { return gate_up.weight.value.defined(); }

  at::Tensor forward(const at::Tensor& x_NC, Tape* tape, const at::Tensor& onto_NC) const;
  void recompute(const at::Tensor& x_NC, Tape& tape) const { tape.keep(gate_up.forward(x_NC)); }
  at::Tensor backward(const at::Tensor& g_NC, const at::Tensor& x_NC, Tape& tape) const;

 private:
  at::Tensor weights(const at::Tensor& x_NC) const;
};

struct ExpertFeedForward {
  Experts experts;
  int64_t layer = 0;
  Linear router;        // noisy: twice the experts, the second half for the noise
  Weight bias;          // sigmoid
  Exchanges exchanges;                   // that share the layer
  GroupedLinear gate_up, down;   // of the experts that are here
  SharedExpert shared;  // none where its weights are undefined

  // The output is my share of the rows, as is `onto_SC`.
  at::Tensor forward(const at::Tensor& x_NC, const Pass& pass, Tape* tape, const at::Tensor& onto_SC = {}) const;
  void recompute(const at::Tensor& x_NC, const Pass& pass, Tape& tape) const;
  // A summand of the input's gradient, of all rows.
  at::Tensor backward(const at::Tensor& g_NC, const at::Tensor& x_NC, const Pass& pass, Tape& tape) const;

 private:
  struct Decision;  // who goes where
  // W are the rows of whole sequences: N on one rank of the context axis.
  at::Tensor logits(const at::Tensor& x_NC, const Pass& pass) const;  // [W, E]
  Decision decide(const at::Tensor& logits_WE, const Pass& pass) const;
  at::Tensor router_backward(const at::Tensor& g_gate_R, const at::Tensor& logits_WE, const Decision& decision,
                             const at::Tensor& x_NC, const Pass& pass) const;
  // Of what all ranks of the tensor and context axes know, one counts.
  bool counts() const { return exchanges.mesh.coordinate(Axis::tensor) == 0 && exchanges.mesh.coordinate(Axis::context) == 0; }
  at::Tensor router_input(const at::Tensor& x_NC, const Pass& pass) const;
  Linear wide_router(const at::Tensor& like) const;
};

}  // namespace megalith
