// Reserved addresses: pages come with the first touch and go with drop(). What is reserved costs nothing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace megalith {

inline constexpr size_t kPage = 4096;               // of x86-64
inline constexpr size_t kHugePage = size_t{2} << 20;

class AddressSpace {
 public:
  // `bytes` are rounded up to huge pages; throws BudgetExceeded when the system refuses even the addresses.
  explicit AddressSpace(size_t bytes);
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  uintptr_t begin() const { return begin_; }  // on a huge page
  uintptr_t end() const { return end_; }
  bool holds(uintptr_t address) const { return address >= begin_ && address < end_; }

  // To be called before a range without pages is touched for the first time. Huge pages that lie wholly within
  // the range may serve it if it is `large`; elsewhere they would bring in neighbours that nobody counts.
  void open(uintptr_t begin, uintptr_t end, bool large);
  // Gives the pages of a range back to the system; what was in them is lost.
  void drop(uintptr_t begin, uintptr_t end);
  // Where a range to drop that begins at `at` or a little before should begin so as not to break a huge page.
  uintptr_t whole_page_before(uintptr_t at) const;

 private:
  size_t slot(uintptr_t address) const { return (address - begin_) / kHugePage; }
  void set_huge(size_t first, size_t last, bool wanted);  // slots first to last - 1

  uintptr_t mapped_ = 0;  // as the system gave it, before alignment
  size_t mapped_bytes_ = 0;
  uintptr_t begin_ = 0, end_ = 0;
  uintptr_t opened_ = 0;     // up to here memory may be touched
  std::vector<bool> huge_;  // by slot of one huge page: may the system use one?
};

}  // namespace megalith
