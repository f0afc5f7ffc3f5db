// Shared by the checkpoint tests: a temporary folder, a small model, a saved checkpoint, functions that damage one.
#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "checkpoint/store.h"
#include "checkpoint/writer.h"

namespace megalith::test {

class TempDir {
 public:
  TempDir() {
    std::string pattern = testing::TempDir() + "megalith-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// Two tensors of 1000 and 3 floats: value = base + index.
inline std::vector<TensorSpec> small_tensors() {
  return {{"layer.weight", DType::f32, {10, 100}}, {"layer.bias", DType::f32, {3}}};
}

inline std::vector<float> ramp(int64_t count, float base) {
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), base);
  return values;
}

inline std::span<const std::byte> bytes_of(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

// A complete checkpoint. Its values begin at the number of the step.
inline std::filesystem::path save(const std::filesystem::path& checkpoints, int64_t step) {
  std::filesystem::path dir = checkpoints / checkpoint_name(step);
  CheckpointWriter writer(dir, plan_files(small_tensors(), 1 << 20), {{"config.json", "{}\n"}});
  for (const TensorSpec& spec : small_tensors())
    writer.write("model.safetensors", spec.name, 0,
                 bytes_of(ramp(spec.elements(), static_cast<float>(step))));
  writer.commit({{"step", step}});
  return dir;
}

inline void flip_byte(const std::filesystem::path& path, int64_t offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(offset);
  char byte = static_cast<char>(file.get());
  file.seekp(offset);
  file.put(static_cast<char>(byte ^ 0x10));
}

// Returns the message of the UserError that `work` throws. If it throws none, returns an empty text and fails the test.
template <class Work>
std::string user_error(Work work) {
  try {
    work();
  } catch (const UserError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no UserError was thrown";
  return "";
}

inline std::vector<std::string> names_in(const std::filesystem::path& dir) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace megalith::test

#define EXPECT_CONTAINS(text, part) \
  EXPECT_NE(std::string(text).find(part), std::string::npos) << "in: " << (text) << "\nnot: " << (part)
