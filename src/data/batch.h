// The data of a training step: token ids and targets, without tensors.
#pragma once
#include <cstdint>
#include <vector>

#include "config/config.h"

namespace megalith {

inline constexpr int64_t kNoTarget = -100;  // a position without loss (Hugging Face's convention)

// Layers that process only some tokens of each sequence in a training step.
struct TokenDropping {
  int64_t kept = 0;              // tokens of a sequence that these layers process; 0: no layer drops
  std::vector<int64_t> layers;   // ascending
  std::vector<uint8_t> always;   // sequences x length: 1 for a token that is never dropped; empty: any may be dropped
};

struct Batch {
  int64_t sequences = 0;
  int64_t length = 0;
  std::vector<int64_t> ids;      // sequences x length
  std::vector<int64_t> targets;  // sequences x length, kNoTarget: no target; empty if sequences are compared
  std::vector<int64_t> tokens;   // of each sequence; the rest of its positions is padding. Empty: no padding
  Comparison comparison;
  std::vector<int64_t> prefix;   // prefix objective: per sequence, how many leading positions see each other; otherwise
                                 // empty
  // For data.attention: document, otherwise empty. Sequences x length: the position in the sequence at which each
  // position's document begins (0 if it began before the sequence).
  std::vector<int64_t> document_begin;
  TokenDropping dropping;
  int64_t first_sequence = 0;    // number of the first sequence in the step's batch. It is a key of dropout,
                                 // so that dropout does not depend on how the batch is cut

  // Number of losses whose mean is the loss of the batch.
  int64_t target_count() const {
    if (comparison.any()) return sequences / comparison.columns;
    int64_t n = 0;
    for (int64_t t : targets) n += t != kNoTarget;
    return n;
  }
  // Removes positions at the end that are padding in all sequences, up to a multiple of a few positions.
  void trim();
  // Returns a number for each sequence that is equal for equal tokens.
  std::vector<uint64_t> text_marks() const;
  // Returns sequences [begin, begin + count) as a batch of their own.
  Batch slice(int64_t begin, int64_t count) const;
};

}  // namespace megalith
