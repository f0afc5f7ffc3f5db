// Turns tokens back into text.
#pragma once
#include <memory>
#include <string>
#include <vector>

namespace megalith {

struct Component;

class Decoder {
 public:
  virtual ~Decoder() = default;
  // Rewrites the pieces of a text. After the last decoder, the text is their concatenation.
  virtual void apply(std::vector<std::string>& pieces) const = 0;
};

// Returns null for a JSON null (tokens are then joined with spaces). Supports Sequence, ByteLevel, ByteFallback, Fuse,
// Metaspace, Replace, Strip, WordPiece. For bytes that are not UTF-8, the reference returns U+FFFD; these decoders
// return the bytes.
std::unique_ptr<Decoder> read_decoder(const Component& component);

}  // namespace megalith
