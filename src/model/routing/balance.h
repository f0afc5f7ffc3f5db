// Losses that balance the load of the experts, for one group of tokens.
//
//   softmax, switch, gshard   experts * sum over experts of (choices a token) * (mean softmax); switch and gshard count
//                             only first choices
//   noisy, with noise         squared coefficients of variation of importance (sums of gates) and of load (sums of the
//                             probabilities that a token would choose the expert if its noise for it were drawn again)
#pragma once
#include "model/routing/choice.h"

namespace megalith {

template <class Real>
struct Balance {
  Balance(const RouterInput<Real>& in, const Choice<Real>& choice, const TokenGroup& group);

  Real loss = 0;
  // By expert: derivatives of the loss by a token's weight, by its gate, and by its probability of choosing the expert.
  std::vector<Real> by_weight, by_gate, by_load;
};

// Noisy router: a token chooses `expert` with the probability Φ(argument), where Φ is the normal distribution function.
// `argument` compares the logit of `expert` with that of `rival`.
template <class Real>
struct Threshold {
  Real argument = 0;
  int32_t rival = 0;
};
template <class Real>
Threshold<Real> threshold(const RouterInput<Real>& in, const Choice<Real>& choice, int64_t token, int32_t expert);

}  // namespace megalith
