// Byte strings by prefix. One walk from a position in a text finds all known strings that begin there.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace megalith {

// A double array: the child of a node for a byte is at place base + byte, if the parent of that place is the node.
class ByteTrie {
 public:
  static constexpr int32_t kNone = -1;
  static constexpr int32_t kRoot = 0;

  // Values must not be negative. The last of equal keys wins. Empty keys are never found.
  explicit ByteTrie(std::vector<std::pair<std::string, int32_t>> keys = {});

  // Returns the child of `node` for `byte`, or kNone.
  int32_t step(int32_t node, char byte) const {
    size_t at =
        static_cast<size_t>(nodes_[static_cast<size_t>(node)].base) + static_cast<unsigned char>(byte);
    return nodes_[at].parent == node ? static_cast<int32_t>(at) : kNone;
  }
  // Returns the value of the key that ends at this node, or kNone.
  int32_t value(int32_t node) const { return nodes_[static_cast<size_t>(node)].value; }

 private:
  struct Node {
    int32_t base = 0;
    int32_t parent = kNone;  // kNone: this place is free
    int32_t value = kNone;
  };
  using Keys = std::vector<std::pair<std::string, int32_t>>;
  struct Range {
    size_t first, last;  // indices of sorted keys
    size_t depth;        // length in bytes of the prefix that these keys share
    int32_t node;
  };
  int32_t find_base(const std::vector<unsigned char>& labels);
  void grow(size_t size);

  std::vector<Node> nodes_;  // has 256 places behind the last base, so that step() needs no bounds check
  size_t first_free_ = 1;    // no place before this is free, except holes that we gave up
};

}  // namespace megalith
