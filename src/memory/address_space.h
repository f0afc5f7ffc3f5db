// Reserved addresses. Pages are allocated at the first access and freed by drop(). Addresses without pages cost nothing.
// The pages are the process's own memory, or a memfd if other processes are to map them. A memfd has no name in any file
// system and disappears with its last user.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace megalith {

inline constexpr size_t kPage = 4096;               // bytes, on x86-64
inline constexpr size_t kHugePage = size_t{2} << 20;

inline uintptr_t align_up(uintptr_t n, size_t to) { return (n + to - 1) / to * to; }
inline uintptr_t align_down(uintptr_t n, size_t to) { return n / to * to; }

enum class Backing : uint8_t { own, shared };

class AddressSpace {
 public:
  // `bytes` is rounded up to huge pages. Throws BudgetExceeded if the system refuses even the addresses.
  explicit AddressSpace(size_t bytes, Backing backing = Backing::own);
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  uintptr_t begin() const { return begin_; }  // aligned to a huge page
  uintptr_t end() const { return end_; }
  Backing backing() const { return fd_ < 0 ? Backing::own : Backing::shared; }
  int fd() const { return fd_; }  // the memfd, whose first byte is at begin(); -1 if own
  bool holds(uintptr_t address) const { return address >= begin_ && address < end_; }

  // Call it before the first access to a range without pages. If the range is `large`, the system may use huge pages
  // that are completely inside it. Other huge pages would also allocate memory outside the range, which the accounts do
  // not include.
  void open(uintptr_t begin, uintptr_t end, bool large);
  // Returns the pages of a range to the system. Their content is lost.
  void drop(uintptr_t begin, uintptr_t end);
  // Moves a range that has pages, and was opened as large, to huge pages if the system has free ones. Needed for shared
  // memory: it gets small pages even if large pages were requested, unless the administrator changes that.
  void make_huge(uintptr_t begin, uintptr_t end);
  // Returns where a range to drop should begin instead of at `at`, so that it does not split a huge page.
  uintptr_t whole_page_before(uintptr_t at) const;

 private:
  size_t slot(uintptr_t address) const { return (address - begin_) / kHugePage; }
  void close_all();
  void set_huge(size_t first, size_t last, bool wanted);  // slots first to last - 1

  uintptr_t mapped_ = 0;  // the system's mapping, before alignment
  size_t mapped_bytes_ = 0;
  uintptr_t begin_ = 0, end_ = 0;
  int fd_ = -1;
  uintptr_t opened_ = 0;     // memory below this address may be accessed
  std::vector<bool> huge_;  // by slot of one huge page: true if the system may use one
};

}  // namespace megalith
