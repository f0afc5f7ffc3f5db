#include "inference/vector_file.h"

#include <fmt/format.h>

#include <string>

#include "checkpoint/safetensors.h"

namespace megalith {
namespace {

// Format version 1.0: magic, version, length of the description, description. The description ends at a multiple of 64.
std::string numpy_header(int64_t rows, int64_t width) {
  std::string about = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, width);
  constexpr size_t kBefore = 10, kAlign = 64;
  about.append(kAlign - (kBefore + about.size() + 1) % kAlign, ' ');
  about += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(about.size() & 0xff);
  header += static_cast<char>(about.size() >> 8);
  return header + about;
}

}  // namespace

VectorFile::VectorFile(const std::filesystem::path& path, int64_t rows, int64_t width) : file_(path) {
  const TensorSpec vectors{"embeddings", DType::f32, {rows, width}};
  const std::string header =
      path.extension() == ".npy" ? numpy_header(rows, width) : build_safetensors_header(std::span(&vectors, 1));
  file_.reserve(std::ssize(header) + vectors.bytes());
  file_.put(header);
}

void VectorFile::append(std::span<const float> vectors) {
  file_.put({reinterpret_cast<const char*>(vectors.data()), vectors.size_bytes()});
}

void VectorFile::finish() {
  file_.end();
  file_.give_name();
}

}  // namespace megalith
