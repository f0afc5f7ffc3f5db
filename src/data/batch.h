// What a step trains on: token ids and targets, in a form that needs no tensors.
#pragma once
#include <cstdint>
#include <vector>

namespace megalith {

inline constexpr int64_t kNoTarget = -100;  // a position without loss (Hugging Face's convention)

struct Batch {
  int64_t sequences = 0;
  int64_t length = 0;
  std::vector<int64_t> ids;      // sequences x length
  std::vector<int64_t> targets;  // sequences x length, kNoTarget where there is none
  std::vector<int64_t> prefix;   // prefix objective: per sequence, how many leading positions see each other; else empty
  // data.attention: document. Sequences x length: where, in its sequence, each position's document begins (0 for
  // one that began before the sequence). Else empty.
  std::vector<int64_t> document_begin;
  int64_t first_sequence = 0;    // number of the first sequence inside the step's batch: keys dropout, so that it does
                                 // not depend on how the batch is cut

  int64_t target_count() const {
    int64_t n = 0;
    for (int64_t t : targets) n += t != kNoTarget;
    return n;
  }
  // Sequences [begin, begin + count) as a batch of their own.
  Batch slice(int64_t begin, int64_t count) const;
};

}  // namespace megalith
