#include "inference/vector_file.h"

#include <fmt/format.h>

#include <string>

#include "base/error.h"
#include "base/new_file.h"
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

VectorFile::VectorFile(std::filesystem::path path, int64_t rows, int64_t width) : path_(std::move(path)), aside_(path_) {
  aside_ += fmt::format(".tmp-{}", random_hex(8));
  file_ = FileHandle::create(aside_);
  const TensorSpec vectors{"embeddings", DType::f32, {rows, width}};
  const std::string header =
      path_.extension() == ".npy" ? numpy_header(rows, width) : build_safetensors_header(std::span(&vectors, 1));
  try {
    file_.reserve(std::ssize(header) + vectors.bytes());
    file_.write_at(0, as_bytes(header));
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(aside_, ignored);
    throw;
  }
  written_ = std::ssize(header);
}

VectorFile::~VectorFile() {
  std::error_code ignored;
  if (!finished_) std::filesystem::remove(aside_, ignored);
}

void VectorFile::append(std::span<const float> vectors) {
  file_.write_at(written_, std::as_bytes(vectors));
  written_ += std::ssize(std::as_bytes(vectors));
}

void VectorFile::finish() {
  file_.sync();
  std::error_code error;
  std::filesystem::rename(aside_, path_, error);
  if (error) throw Fault(fmt::format("{}: cannot rename a file to this name: {}", path_.string(), error.message()));
  finished_ = true;
}

}  // namespace megalith
