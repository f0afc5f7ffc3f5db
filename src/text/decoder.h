// From tokens back to text.
#pragma once
#include <memory>
#include <string>
#include <vector>

namespace megalith {

struct Component;

class Decoder {
 public:
  virtual ~Decoder() = default;
  // Rewrites the pieces of a text; their concatenation is the text.
  virtual void apply(std::vector<std::string>& pieces) const = 0;
};

// Null for a JSON null (tokens are then joined with spaces). Knows Sequence, ByteLevel, ByteFallback, Fuse,
// Metaspace, Replace, Strip, WordPiece. Where the reference puts U+FFFD for bytes that are not UTF-8, these
// give the bytes.
std::unique_ptr<Decoder> read_decoder(const Component& component);

}  // namespace megalith
