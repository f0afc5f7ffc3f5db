#include "memory/address_space.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "base/units.h"
#include "memory/allocator.h"
#include "memory/machine.h"

namespace megalith {
namespace {

constexpr size_t kOpenAtOnce = size_t{64} << 20;

void* place(uintptr_t address) { return reinterpret_cast<void*>(address); }

[[noreturn]] void refuse_mapping(size_t bytes) {
  throw BudgetExceeded(fmt::format("the system cannot provide {} of memory", show(Bytes(static_cast<int64_t>(bytes)))));
}

}  // namespace

AddressSpace::AddressSpace(size_t bytes, Backing backing) {
  MEGALITH_ASSERT(sysconf(_SC_PAGESIZE) == static_cast<long>(kPage), "pages of {} bytes", sysconf(_SC_PAGESIZE));
  bytes = align_up(bytes, kHugePage);
  mapped_bytes_ = bytes + kHugePage;
  // Not accessible until opened: with overcommit_memory = 2 the system counts all accessible memory, so it counts only
  // what is opened.
  void* got = mmap(nullptr, mapped_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED) refuse_mapping(bytes);
  mapped_ = reinterpret_cast<uintptr_t>(got);
  begin_ = opened_ = align_up(mapped_, kHugePage);
  end_ = begin_ + bytes;
  huge_.assign(bytes / kHugePage, false);
  if (backing == Backing::shared) {
    fd_ = memfd_create(shared_state_name(getpid()).c_str(), MFD_CLOEXEC);
    const bool made =
        fd_ >= 0 && ftruncate(fd_, static_cast<off_t>(bytes)) == 0 &&
        mmap(place(begin_), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd_, 0) != MAP_FAILED;
    if (!made) {
      close_all();
      refuse_mapping(bytes);
    }
    opened_ = end_;
  }
  // If huge pages are the system's default, they must be kept out of small blocks. The call fails on a kernel without
  // huge pages, which is fine.
  madvise(got, mapped_bytes_, MADV_NOHUGEPAGE);
}

AddressSpace::~AddressSpace() { close_all(); }

void AddressSpace::close_all() {
  munmap(place(mapped_), mapped_bytes_);
  if (fd_ >= 0) close(fd_);
}

void AddressSpace::open(uintptr_t begin, uintptr_t end, bool large) {
  if (end > opened_) {
    const uintptr_t to = std::min(end_, align_up(end, kOpenAtOnce));
    if (mprotect(place(opened_), to - opened_, PROT_READ | PROT_WRITE) != 0) refuse_mapping(end - begin);
    opened_ = to;
  }
  const uintptr_t first = align_up(begin, kHugePage), last = align_down(end, kHugePage);
  if (!large || first >= last) {
    set_huge(slot(begin), slot(end - 1) + 1, false);
    return;
  }
  if (begin < first) set_huge(slot(begin), slot(first), false);
  set_huge(slot(first), slot(first) + (last - first) / kHugePage, true);
  if (last < end) set_huge(slot(last), slot(last) + 1, false);
}

void AddressSpace::drop(uintptr_t begin, uintptr_t end) {
  // If only a part of a huge page stays, the kernel must not complete the page again.
  const size_t first = slot(begin), last = slot(end - 1);
  if (begin % kHugePage != 0) set_huge(first, first + 1, false);
  if (end % kHugePage != 0) set_huge(last, last + 1, false);
  const auto offset = static_cast<off_t>(begin - begin_), bytes = static_cast<off_t>(end - begin);
  const int failed = fd_ < 0 ? madvise(place(begin), end - begin, MADV_DONTNEED)
                             : fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes);
  MEGALITH_ASSERT(failed == 0, "cannot return pages to the system");
}

void AddressSpace::make_huge([[maybe_unused]] uintptr_t begin, [[maybe_unused]] uintptr_t end) {
#ifdef MADV_COLLAPSE
  const uintptr_t first = align_up(begin, kHugePage), last = align_down(end, kHugePage);
  if (first < last) madvise(place(first), last - first, MADV_COLLAPSE);  // fails, harmlessly, on an older kernel
#endif
}

uintptr_t AddressSpace::whole_page_before(uintptr_t at) const { return huge_[slot(at)] ? align_down(at, kHugePage) : at; }

void AddressSpace::set_huge(size_t first, size_t last, bool wanted) {
  for (size_t i = first; i < last;) {
    if (huge_[i] == wanted) {
      i++;
      continue;
    }
    size_t j = i;
    for (; j < last && huge_[j] != wanted; j++) huge_[j] = wanted;
    madvise(place(begin_ + i * kHugePage), (j - i) * kHugePage, wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    i = j;
  }
}

}  // namespace megalith
