#include "base/checksum.h"

#include <xxhash.h>
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>  // redefines XXH3_64bits as the version for this processor
#endif

#include "base/error.h"

namespace megalith {

uint64_t xxh3(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

Xxh3::Xxh3() : state_(XXH3_createState(), [](XXH3_state_s* state) { XXH3_freeState(state); }) {
  if (!state_) throw Fault("out of memory: cannot create a checksum");
  clear();
}

void Xxh3::add(std::span<const std::byte> bytes) { XXH3_64bits_update(state_.get(), bytes.data(), bytes.size()); }

uint64_t Xxh3::value() const { return XXH3_64bits_digest(state_.get()); }

void Xxh3::clear() { XXH3_64bits_reset(state_.get()); }

}  // namespace megalith
