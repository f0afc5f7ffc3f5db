// Rewriting text before it is cut: what BERT, Llama-2, Qwen and T5 do to their input.
#pragma once
#include <memory>
#include <string>

namespace megalith {

struct Component;

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // `begins` is false for text that goes on an earlier piece: no mark of a beginning is added.
  virtual void apply(std::string& text, bool begins) const = 0;
};

// Null for a JSON null. Knows Sequence, Prepend, Replace, BertNormalizer, Precompiled, Strip, Nmt, Lowercase,
// StripAccents, NFC, NFD, NFKC, NFKD.
std::unique_ptr<Normalizer> read_normalizer(const Component& component);

}  // namespace megalith
