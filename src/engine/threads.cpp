#include "engine/threads.h"

#include <ATen/Parallel.h>
#include <omp.h>

#include <utility>

namespace megalith {

void set_threads(int64_t threads) { at::set_num_threads(static_cast<int>(threads)); }

void keep_to_one_thread() {
  thread_local bool done = false;
  if (std::exchange(done, true)) return;
  // LibTorch sets the thread count of a thread at the first use, and would overwrite ours. It remembers this in two places:
  // in the library, and in the code that its headers put into ours. So both calls come before we set the count. A second
  // OpenMP team would also make libgomp put the workers of the first team to sleep after every region.
  at::get_num_threads();
  at::internal::lazy_init_num_threads();
  omp_set_num_threads(1);
}

}  // namespace megalith
