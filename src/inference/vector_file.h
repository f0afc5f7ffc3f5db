// A file of vectors that grows row by row: a NumPy array (.npy), or safetensors with the tensor `embeddings`. The file gets its
// name when it is complete.
#pragma once
#include <filesystem>
#include <span>

#include "base/atomic_file.h"

namespace megalith {

class VectorFile {
 public:
  VectorFile(const std::filesystem::path& path, int64_t rows, int64_t width);
  void append(std::span<const float> vectors);
  void finish();

 private:
  AtomicFile file_;
};

}  // namespace megalith
