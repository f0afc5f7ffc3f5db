// Byte strings by prefix: from a position of a text, every known string that begins there, in one walk.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace megalith {

// A double array: a node's child for a byte stands at base + byte, if that place names the node as its
// parent.
class ByteTrie {
 public:
  static constexpr int32_t kNone = -1;
  static constexpr int32_t kRoot = 0;

  // Values must not be negative. Of equal keys the last wins; empty keys are never found.
  explicit ByteTrie(std::vector<std::pair<std::string, int32_t>> keys = {});

  // The node one byte further, or kNone.
  int32_t step(int32_t node, char byte) const {
    size_t at =
        static_cast<size_t>(nodes_[static_cast<size_t>(node)].base) + static_cast<unsigned char>(byte);
    return nodes_[at].parent == node ? static_cast<int32_t>(at) : kNone;
  }
  // The value of the key that ends at this node, or kNone.
  int32_t value(int32_t node) const { return nodes_[static_cast<size_t>(node)].value; }

 private:
  struct Node {
    int32_t base = 0;
    int32_t parent = kNone;  // kNone: this place is free
    int32_t value = kNone;
  };
  using Keys = std::vector<std::pair<std::string, int32_t>>;
  struct Range {
    size_t first, last;  // of sorted keys
    size_t depth;        // bytes that they share
    int32_t node;
  };
  int32_t find_base(const std::vector<unsigned char>& labels);
  void grow(size_t size);

  std::vector<Node> nodes_;  // with 256 places behind the last base, so that step needs no bound
  size_t first_free_ = 1;    // no place before this is free, but for single holes given up
};

}  // namespace megalith
