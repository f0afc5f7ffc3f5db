// Allocates large blocks in reserved addresses. Freed ranges are joined and keep their pages. A new block is placed
// where most of it has pages. Holes in the addresses cost nothing; pages do, and drop_down_to limits them. Some of the
// addresses may be shared with other processes. Blocks requested as shared go there while there is room. Not
// thread-safe: the owner locks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "memory/address_space.h"

namespace megalith {

class Arena {
 public:
  static constexpr size_t kLarge = 4 * kHugePage;  // bytes; blocks of this size and more are on huge pages

  // Reserves addresses in portions of `reserve` bytes, or fewer if the system has a limit.
  explicit Arena(size_t reserve = size_t{64} << 30) : reserve_(reserve) {}

  // The size of a block in whole pages.
  static size_t rounded(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

  // Returns a block of rounded(bytes). Its pages may be new (zero) or contain old data. Throws BudgetExceeded.
  void* take(size_t bytes, Backing backing = Backing::own);
  // Frees a block and returns its size.
  size_t give(void* data);
  bool holds(const void* data) const;

  // Reserves addresses that other processes may map. Call it once. Throws BudgetExceeded.
  const AddressSpace& share(size_t bytes);
  // Moves large shared blocks that have been accessed to huge pages, if possible.
  void make_shared_huge();

  // Bytes of free ranges that may have pages.
  size_t cached() const { return cached_; }
  // Drops pages of the ranges freed longest ago until no more than `bytes` are cached.
  void drop_down_to(size_t bytes);

  // For tests: the reserved ranges.
  const std::vector<std::unique_ptr<AddressSpace>>& spaces() const { return spaces_; }

 private:
  struct Free {
    uintptr_t end = 0;
    bool has_pages = false;
    uint64_t freed = 0;  // counts up; after a join, the newest of the ranges. 0 without pages
  };
  using FreeRanges = std::map<uintptr_t, Free>;
  struct Window {
    uintptr_t begin = 0;
    size_t with_pages = 0;  // bytes
  };

  bool find(size_t bytes, Backing backing, Window& best) const;
  void weigh(FreeRanges::const_iterator first, FreeRanges::const_iterator last, uintptr_t begin, size_t bytes,
             Window& best) const;
  void reserve_more(size_t bytes);
  void add_space(std::unique_ptr<AddressSpace> space);
  AddressSpace& space_of(uintptr_t address) const;
  void add(uintptr_t begin, Free range);  // joins neighbours of the same kind
  void remove(FreeRanges::iterator range);

  size_t reserve_;
  std::vector<std::unique_ptr<AddressSpace>> spaces_;
  FreeRanges free_;                                    // by address
  std::set<std::pair<uint64_t, uintptr_t>> by_age_;  // (freed, begin) of free ranges with pages
  std::unordered_map<uintptr_t, size_t> taken_;
  size_t cached_ = 0;
  uint64_t clock_ = 0;
};

}  // namespace megalith
