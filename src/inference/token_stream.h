// Sequences of ids that grow token by token, with a key-value cache. Generation of text is built on them.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/engine.h"

namespace at {
class Tensor;
}

namespace megalith {

struct KeyValueCache;

// Sequences that grow together. Each one has the same logits as if it were alone: prompts are read one by one, and products
// of single tokens compute each row independently (model/kernels/few_rows.h).
class TokenStream {
 public:
  explicit TokenStream(Engine& engine);
  ~TokenStream();

  static constexpr int64_t kMostSequences = 32;

  // Adds a sequence with this beginning (at least one id); returns its number.
  int64_t begin(std::vector<int64_t> ids);
  // Logits after the last id of a sequence; valid until the next call of begin or grow.
  std::span<const float> logits(int64_t sequence) const;
  // Appends one id to each of the given sequences, which must all be different.
  void grow(const std::vector<int64_t>& sequences, const std::vector<int64_t>& ids);

  const std::vector<int64_t>& ids(int64_t sequence) const { return histories_[static_cast<size_t>(sequence)]; }
  bool context_was_full() const { return slid_; }  // a sequence continued from the second half of its context

 private:
  // Computes the history of a sequence. If the history is longer than the context, computes only its last half context.
  void read(int64_t sequence);
  void keep_logits(const std::vector<int64_t>& sequences, const at::Tensor& logits_BV);

  Engine& engine_;  // borrowed
  std::unique_ptr<KeyValueCache> cache_;
  std::vector<std::vector<int64_t>> histories_;
  std::vector<std::vector<float>> logits_;
  bool slid_ = false;
};

}  // namespace megalith
