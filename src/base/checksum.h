// The checksum of checkpoints, spill files and token shards.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

struct XXH3_state_s;

namespace megalith {

// XXH3, 64 bits, seed 0, computed in the widest vector registers of this processor.
uint64_t xxh3(std::span<const std::byte> bytes);

// The same checksum for bytes that arrive in parts.
class Xxh3 {
 public:
  Xxh3();
  void add(std::span<const std::byte> bytes);
  uint64_t value() const;  // of all bytes added since construction or clear()
  void clear();

 private:
  std::unique_ptr<XXH3_state_s, void (*)(XXH3_state_s*)> state_;
};

}  // namespace megalith
