#include "engine/threads.h"

#include <ATen/Parallel.h>
#include <omp.h>

#include <utility>

namespace megalith {

void set_threads(int64_t threads) { at::set_num_threads(static_cast<int>(threads)); }

void keep_to_one_thread() {
  thread_local bool done = false;
  if (std::exchange(done, true)) return;
  // LibTorch sets a thread's number when it is first asked, and remembers that it has done so twice: for its own calls
  // and for what its headers put into ours. A second team would also make libgomp send the first one's workers to
  // sleep at the end of every region.
  at::get_num_threads();
  at::internal::lazy_init_num_threads();
  omp_set_num_threads(1);
}

}  // namespace megalith
