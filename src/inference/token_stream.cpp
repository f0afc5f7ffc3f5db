#include "inference/token_stream.h"

#include <ATen/core/Tensor.h>

#include <algorithm>

#include "base/error.h"
#include "model/key_value_cache.h"

namespace megalith {

TokenStream::TokenStream(Engine& engine) : engine_(engine), cache_(std::make_unique<KeyValueCache>()) {}
TokenStream::~TokenStream() = default;

int64_t TokenStream::begin(std::vector<int64_t> ids) {
  MEGALITH_ASSERT(!ids.empty() && std::ssize(histories_) < kMostSequences);
  histories_.push_back(std::move(ids));
  logits_.emplace_back();
  const int64_t sequence = std::ssize(histories_) - 1;
  read(sequence);
  return sequence;
}

std::span<const float> TokenStream::logits(int64_t sequence) const { return logits_[static_cast<size_t>(sequence)]; }

void TokenStream::read(int64_t sequence) {
  const std::vector<int64_t>& history = histories_[static_cast<size_t>(sequence)];
  const int64_t most = engine_.shape().longest_sequence();
  std::vector<int64_t> ids = history;
  if (std::ssize(history) > most) {
    ids.assign(history.end() - std::max<int64_t>(1, most / 2), history.end());
    slid_ = true;
  }
  if (sequence < std::ssize(cache_->positions)) cache_->forget(sequence);
  cache_->active = {sequence};
  keep_logits({sequence}, engine_.logits(ids, 1, cache_.get(), /*last_only=*/true));
}

void TokenStream::grow(const std::vector<int64_t>& sequences, const std::vector<int64_t>& ids) {
  const int64_t most = engine_.shape().longest_sequence();
  std::vector<int64_t> together, next;
  for (size_t i = 0; i < sequences.size(); i++) {
    const auto s = static_cast<size_t>(sequences[i]);
    histories_[s].push_back(ids[i]);
    if (cache_->positions[s] >= most) {
      read(sequences[i]);
    } else {
      together.push_back(sequences[i]);
      next.push_back(ids[i]);
    }
  }
  if (together.empty()) return;
  cache_->active = together;
  keep_logits(together, engine_.logits(next, std::ssize(next), cache_.get(), /*last_only=*/true));
}

void TokenStream::keep_logits(const std::vector<int64_t>& sequences, const at::Tensor& logits_BV) {
  const at::Tensor rows = logits_BV.contiguous();
  for (size_t i = 0; i < sequences.size(); i++) {
    const float* row = rows.const_data_ptr<float>() + static_cast<int64_t>(i) * rows.size(1);
    logits_[static_cast<size_t>(sequences[i])].assign(row, row + rows.size(1));
  }
}

}  // namespace megalith
