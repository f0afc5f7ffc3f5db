// The feed-forward half of a layer with experts. A router sends every token to some of many SwiGLU networks. Their weighted
// results are summed. Rows are sorted by expert once, without padding. The router computes in float32, from float32 weights,
// even if the rest computes in 16 bits. (A float64 model has a float64 router.)
//
// Ranks of the expert axis route their own tokens, and the rows are sent to the experts (token_dispatch.h). Ranks of the
// context axis gather their logits, route all tokens of their sequences in the same way, and send their own rows. Ranks of
// the tensor axis hold a part of the width of every expert. They all route all rows, and their results are summed. Backward
// is linear in the part that each rank has, so the gradients can be summed, too.
//
// For backward, only the router's logits and the pre-activations are kept. The routing is computed again from the logits.
#pragma once
#include <vector>

#include "families/model_shape.h"
#include "model/layers/grouped_linear.h"
#include "model/pass.h"
#include "model/tape.h"

namespace megalith {

// One more expert that all tokens use. Its result is weighted by the sigmoid of a Linear with one output.
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
  Weight bias;          // only for the sigmoid router
  Exchanges exchanges;                   // exchanges between the ranks that share the layer
  GroupedLinear gate_up, down;   // only the experts that this rank owns
  SharedExpert shared;  // undefined weights: the layer has no shared expert

  // Returns this rank's share of the output rows. `onto_SC` has the same rows.
  at::Tensor forward(const at::Tensor& x_NC, const Pass& pass, Tape* tape, const at::Tensor& onto_SC = {}) const;
  void recompute(const at::Tensor& x_NC, const Pass& pass, Tape& tape) const;
  // Returns a summand of the input gradient, for all rows.
  at::Tensor backward(const at::Tensor& g_NC, const at::Tensor& x_NC, const Pass& pass, Tape& tape) const;

 private:
  struct Decision;  // which token goes to which expert
  // W is the number of rows of whole sequences. Without a context axis that is N.
  at::Tensor logits(const at::Tensor& x_NC, const Pass& pass) const;  // [W, E]
  Decision decide(const at::Tensor& logits_WE, const Pass& pass) const;
  at::Tensor router_backward(const at::Tensor& g_gate_R, const at::Tensor& logits_WE, const Decision& decision,
                             const at::Tensor& x_NC, const Pass& pass) const;
  // True on the one rank that counts tokens: all ranks of the tensor and context axes know the same counts.
  bool counts() const { return exchanges.mesh.coordinate(Axis::tensor) == 0 && exchanges.mesh.coordinate(Axis::context) == 0; }
  at::Tensor router_input(const at::Tensor& x_NC, const Pass& pass) const;
  Linear wide_router(const at::Tensor& like) const;
};

}  // namespace megalith
