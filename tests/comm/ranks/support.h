// What every rank of the tests has: a world, a shared region, and values that any rank can work out.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "comm/world.h"

namespace megalith::testing_ranks {

World& world();                   // of this process; main joins it
Channel& everyone();              // all ranks, in their order
// Bytes that every rank shares: far more than memory, as pages come with the first touch.
inline constexpr int64_t kRegion = int64_t{1} << 36;

enum class Memory { own, shared, mixed };  // mixed: shared by even ranks only
inline const Memory kMemories[] = {Memory::own, Memory::shared, Memory::mixed};

// `count` elements in memory of that kind; the region's place moves, so that ranks' offsets differ.
class Values {
 public:
  Values(Memory memory, int64_t count, Element element);
  Buffer buffer() { return {data_, count_, element_}; }
  std::vector<std::byte> bytes() const { return {data_, data_ + count_ * size_of(element_)}; }
  void set(const std::vector<std::byte>& bytes) {
    if (!bytes.empty()) std::memcpy(data_, bytes.data(), bytes.size());
  }
  std::span<std::byte> span() { return {data_, static_cast<size_t>(count_ * size_of(element_))}; }

 private:
  std::vector<std::byte> own_;
  std::byte* data_;
  int64_t count_;
  Element element_;
};

// What `rank` holds at the start of a test case, in the element's own format.
std::vector<std::byte> drawn(int rank, int64_t count, Element element, uint32_t seed);
// The sum in the order of `ranks`, by a plain loop: float for all but double, rounded at the end.
std::vector<std::byte> summed(const std::vector<int>& ranks, int64_t count, Element element, uint32_t seed);
double as_double(const std::vector<std::byte>& bytes, int64_t index, Element element);

}  // namespace megalith::testing_ranks
