// Shared by all rank tests: a world, a shared region, and values that any rank can compute.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "comm/world.h"

namespace megalith::testing_ranks {

World& world();                   // the world of this process, which main joins
Channel& everyone();              // all ranks, in their order
// Bytes that every rank shares: far more than memory, as pages are allocated at the first access.
inline constexpr int64_t kRegion = int64_t{1} << 36;

enum class Memory { own, shared, mixed };  // mixed: shared by even ranks only
inline const Memory kMemories[] = {Memory::own, Memory::shared, Memory::mixed};

// `count` elements in this kind of memory. Their position in the region changes, so that the offsets of ranks differ.
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

// The values of `rank` at the start of a test case, in the element's format.
std::vector<std::byte> drawn(int rank, int64_t count, Element element, uint32_t seed);
// The sum in the order of `ranks`, computed by a plain loop: in float for all types except double, rounded at the end.
std::vector<std::byte> summed(const std::vector<int>& ranks, int64_t count, Element element, uint32_t seed);
double as_double(const std::vector<std::byte>& bytes, int64_t index, Element element);

}  // namespace megalith::testing_ranks
