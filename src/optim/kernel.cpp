#include "optim/kernel.h"

#include <ATen/Parallel.h>

#include <algorithm>

namespace megalith {

void for_chunks(int64_t n, int64_t chunk, const std::function<void(int64_t begin, int64_t end)>& body) {
  at::parallel_for(0, (n + chunk - 1) / chunk, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) body(i * chunk, std::min(n, (i + 1) * chunk));
  });
}

}  // namespace megalith
