// Groups of tokens of a micro-batch that share the experts' capacities and a balancing loss. Groups depend only on the data.
// So no layout and no cut into micro-batches changes which choices are dropped.
#pragma once
#include <cstdint>
#include <vector>

#include "families/model_shape.h"

namespace megalith {

// Rows first, first + stride, ...
struct TokenGroup {
  int64_t first = 0, stride = 1, count = 0;
  int64_t row(int64_t i) const { return first + i * stride; }
};

// Returns the groups of `sequences` whole sequences of `length` tokens, stored row after row. If the length is not a
// multiple of the group size, the last group of a sequence is smaller.
std::vector<TokenGroup> token_groups(const Experts& experts, int64_t sequences, int64_t length);

// Returns the number of logits of a token: one per expert. Noisy has twice as many: the second half is for the size of the
// noise.
inline int64_t router_width(const Experts& experts) {
  return experts.router == Router::noisy ? 2 * experts.count : experts.count;
}

// Returns how many of the `tokens` of a group an expert takes at most.
int64_t room(const Experts& experts, double capacity, int64_t tokens);
// Returns an upper bound of the rows of all experts together, for any load. With several `ranks`, experts are spread over
// ranks with `sequences` sequences each. Then this is an upper bound of the rows that one rank receives.
int64_t most_rows(const Experts& experts, int64_t sequences, int64_t length, int64_t ranks = 1);

}  // namespace megalith
