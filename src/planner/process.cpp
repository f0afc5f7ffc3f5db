#include "planner/process.h"

#include <algorithm>

#include "memory/allocator.h"
#include "memory/machine.h"
#include "planner/calibration.h"

namespace megalith {
namespace {

constexpr int64_t kStep = int64_t{4} << 20;
// A token in two tables, and its merge. Measured with 8,000 tokens: 172 bytes each.
constexpr int64_t kBytesPerToken = 300;
// OpenMPI on one host: measured 2.6 MiB.
constexpr int64_t kTransport = int64_t{4} << 20;
// Measured with one thread: 0.1 to 5.2 MiB.
constexpr double kMostProductBuffers = 8 << 20;
constexpr double kMostTokens = 4096;  // no micro-batch that the planner chooses has more
// Order of samples, maps of shards, what training a tokenizer left with the system's allocator: part of ProcessBound::rest.
constexpr int64_t kData = int64_t{6} << 20;

}  // namespace

Bytes measured_process(Bytes transport) {
  start_matrix_library();
  const int64_t bytes = std::max<int64_t>(1, (resident_memory() - transport).value);
  return Bytes((bytes + kStep - 1) / kStep * kStep);
}

Bytes tokenizer_to_come(int64_t vocabulary) { return Bytes(vocabulary * kBytesPerToken); }

Bytes transport_of(int ranks) { return Bytes(ranks > 1 ? kTransport : 0); }

Bytes product_buffers(const PlanInput& input) {
  const auto real = [](int64_t n) { return static_cast<double>(n); };  // sizes that no plan accepts come here, too
  const double width = real(std::max(input.shape.ffn, input.shape.experts.ffn));
  const double sequences = real(input.micro_batch > 0 ? input.micro_batch : input.rank_batch());
  const double tokens = std::min(sequences * real(input.sequence), kMostTokens);
  const double operands = 4 * width * (tokens + real(input.shape.hidden));
  return Bytes(static_cast<int64_t>(std::min(operands, kMostProductBuffers * real(input.threads))));
}

Bytes with_data(Bytes process) {
  release_cached_memory();
  return std::max(process, resident_memory() - Bytes(kData));
}

}  // namespace megalith
