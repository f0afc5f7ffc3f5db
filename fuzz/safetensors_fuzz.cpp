// The bytes of a whole safetensors file: the parser accepts them or throws UserError, nothing else.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "checkpoint/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    megalith::parse_safetensors_header(std::as_bytes(std::span(data, size)), static_cast<int64_t>(size),
                                       "fuzz");
  } catch (const megalith::UserError&) {
  }
  return 0;
}
