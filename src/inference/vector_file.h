// A file of vectors that grows row by row: a NumPy array (.npy), or safetensors with the tensor `embeddings`. The file gets its
// name when it is complete.
#pragma once
#include <filesystem>
#include <span>

#include "checkpoint/file_handle.h"

namespace megalith {

class VectorFile {
 public:
  VectorFile(std::filesystem::path path, int64_t rows, int64_t width);
  ~VectorFile();  // removes an incomplete file
  VectorFile(const VectorFile&) = delete;
  VectorFile& operator=(const VectorFile&) = delete;

  void append(std::span<const float> vectors);
  void finish();

 private:
  std::filesystem::path path_, aside_;
  FileHandle file_;
  int64_t written_ = 0;  // bytes
  bool finished_ = false;
};

}  // namespace megalith
