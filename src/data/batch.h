// What a step trains on: token ids and targets, in a form that needs no tensors.
#pragma once
#include <cstdint>
#include <vector>

namespace megalith {

inline constexpr int64_t kNoTarget = -100;  // a position without loss (Hugging Face's convention)

// Layers that process only some tokens of each sequence in a training step.
struct TokenDropping {
  int64_t kept = 0;              // tokens of a sequence that they process; 0: no layer drops
  std::vector<int64_t> layers;   // rising
  std::vector<uint8_t> always;   // sequences x length: 1 where a token is never dropped; empty: any may be
};

struct Batch {
  int64_t sequences = 0;
  int64_t length = 0;
  std::vector<int64_t> ids;      // sequences x length
  std::vector<int64_t> targets;  // sequences x length, kNoTarget where there is none
  std::vector<int64_t> prefix;   // prefix objective: per sequence, how many leading positions see each other; else empty
  // data.attention: document. Sequences x length: where, in its sequence, each position's document begins (0 for
  // one that began before the sequence). Else empty.
  std::vector<int64_t> document_begin;
  TokenDropping dropping;
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
