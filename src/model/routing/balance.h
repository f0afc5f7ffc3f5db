// Losses that keep experts busy alike, of one group of tokens.
//
//   softmax, switch, gshard   experts * sum over experts of (choices a token) * (mean softmax); of switch and gshard first
//                             choices alone count
//   noisy, with noise         squared coefficients of variation of importance (sums of gates) and of load (sums of the
//                             probabilities of being chosen, were the token's noise for that expert drawn again)
#pragma once
#include "model/routing/choice.h"

namespace megalith {

template <class Real>
struct Balance {
  Balance(const RouterInput<Real>& in, const Choice<Real>& choice, const TokenGroup& group);

  Real loss = 0;
  // What the loss moves by with a token's weight, gate, and probability of being chosen, by expert.
  std::vector<Real> by_weight, by_gate, by_load;
};

// Of noisy: a token's probability of choosing `expert`, as a normal's distribution function at this argument, and whose
// logit it is compared with.
template <class Real>
struct Threshold {
  Real argument = 0;
  int32_t rival = 0;
};
template <class Real>
Threshold<Real> threshold(const RouterInput<Real>& in, const Choice<Real>& choice, int64_t token, int32_t expert);

}  // namespace megalith
