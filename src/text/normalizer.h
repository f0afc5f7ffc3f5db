// Rewrites text before it is split into words, as BERT, Llama-2, Qwen and T5 do.
#pragma once
#include <memory>
#include <string>

namespace megalith {

struct Component;

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // `begins` is false for text that continues an earlier piece. Such text gets no mark for the beginning of a text.
  virtual void apply(std::string& text, bool begins) const = 0;
};

// Returns null for a JSON null. Supports Sequence, Prepend, Replace, BertNormalizer, Precompiled, Strip, Nmt,
// Lowercase, StripAccents, NFC, NFD, NFKC, NFKD.
std::unique_ptr<Normalizer> read_normalizer(const Component& component);

}  // namespace megalith
