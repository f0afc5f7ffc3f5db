// Which tokens of a micro-batch share the experts' capacities and are balanced against each other. Groups follow from
// the data alone, so that no layout and no cut into micro-batches changes what is dropped.
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

// Of `sequences` whole sequences of `length` tokens, row after row. Where a sequence is no multiple of a group, its last
// one is smaller.
std::vector<TokenGroup> token_groups(const Experts& experts, int64_t sequences, int64_t length);

// Logits of a token: one an expert; noisy has as many again, for the size of its noise.
inline int64_t router_width(const Experts& experts) {
  return experts.router == Router::noisy ? 2 * experts.count : experts.count;
}

// Tokens of a group that an expert takes at most.
int64_t room(const Experts& experts, double capacity, int64_t tokens);
// Rows of all experts together at most: the same however uneven their loads are. Where experts are spread over ranks with
// as many sequences each: rows that come to one of them at most, when all tokens want its experts.
int64_t most_rows(const Experts& experts, int64_t sequences, int64_t length, int64_t ranks = 1);

}  // namespace megalith
