// Reserved addresses: pages come with the first touch and go with drop(). What is reserved costs nothing.
// Behind them is the process's own memory or, where other processes are to map the same pages, a memfd: it has no name
// in any file system and vanishes with its last user.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace megalith {

inline constexpr size_t kPage = 4096;               // of x86-64
inline constexpr size_t kHugePage = size_t{2} << 20;

inline uintptr_t align_up(uintptr_t n, size_t to) { return (n + to - 1) / to * to; }
inline uintptr_t align_down(uintptr_t n, size_t to) { return n / to * to; }

enum class Backing : uint8_t { own, shared };

class AddressSpace {
 public:
  // `bytes` are rounded up to huge pages; throws BudgetExceeded when the system refuses even the addresses.
  explicit AddressSpace(size_t bytes, Backing backing = Backing::own);
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  uintptr_t begin() const { return begin_; }  // on a huge page
  uintptr_t end() const { return end_; }
  Backing backing() const { return fd_ < 0 ? Backing::own : Backing::shared; }
  int fd() const { return fd_; }  // of the memfd, whose first byte is at begin()
  bool holds(uintptr_t address) const { return address >= begin_ && address < end_; }

  // To be called before a range without pages is touched for the first time. Huge pages that lie wholly within
  // the range may serve it if it is `large`; elsewhere they would bring in neighbours that nobody counts.
  void open(uintptr_t begin, uintptr_t end, bool large);
  // Gives the pages of a range back to the system; what was in them is lost.
  void drop(uintptr_t begin, uintptr_t end);
  // Puts a range that has pages, and was opened as large, on huge pages where the system has some to spare: shared pages
  // come small, whatever was asked for, unless its administrator says otherwise.
  void make_huge(uintptr_t begin, uintptr_t end);
  // Where a range to drop that begins at `at` or a little before should begin so as not to break a huge page.
  uintptr_t whole_page_before(uintptr_t at) const;

 private:
  size_t slot(uintptr_t address) const { return (address - begin_) / kHugePage; }
  void close_all();
  void set_huge(size_t first, size_t last, bool wanted);  // slots first to last - 1

  uintptr_t mapped_ = 0;  // as the system gave it, before alignment
  size_t mapped_bytes_ = 0;
  uintptr_t begin_ = 0, end_ = 0;
  int fd_ = -1;
  uintptr_t opened_ = 0;     // up to here memory may be touched
  std::vector<bool> huge_;  // by slot of one huge page: may the system use one?
};

}  // namespace megalith
