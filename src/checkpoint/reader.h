// Tensors of a folder, whoever wrote it: a checkpoint of ours or Hugging Face's, one file or many.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_spec.h"

namespace megalith {

class WeightSource {
 public:
  // model.safetensors, or the files that model.safetensors.index.json names.
  static WeightSource open_model(const std::filesystem::path& dir);
  // optimizer-*.safetensors; a folder without has no tensors.
  static WeightSource open_optimizer(const std::filesystem::path& dir);

  const std::filesystem::path& dir() const { return dir_; }
  std::vector<TensorSpec> tensors() const;  // under the names in the files, sorted
  bool has(const std::string& name) const;

  // UserError listing what is missing, too much or of another shape, unless the folder holds exactly these
  // tensors. Types of floating-point numbers may differ. Tolerated, and from then on read under the expected
  // name: a missing or extra leading "transformer.", "bert." or "model.", LayerNorm.gamma/beta, a tied head
  // stored in place of or beside the table it is tied to (beside: with equal values), a parameter stored only as its copy
  // (copy_in_files). A copy can be read by its own name, stored or not. Passed over: buffers and heads that are no
  // parameters of ours.
  void check_matches(const std::vector<TensorSpec>& expected);

  // Elements [element_offset, + out.size()) of a tensor stored as float64/32/16 or bfloat16. Thread-safe.
  void read_f32(const std::string& name, int64_t element_offset, std::span<float> out) const;
  // Elements as they are stored, from element_offset on. UserError unless they are of this type.
  void read_exactly(const std::string& name, DType dtype, int64_t element_offset, std::span<std::byte> out) const;

 private:
  explicit WeightSource(std::filesystem::path dir) : dir_(std::move(dir)) {}
  void add_file(const std::filesystem::path& path);
  const TensorSpec& spec_of(const std::string& stored) const;
  const std::string& stored_name(const std::string& name) const;  // UserError where there is none
  bool same_values(const std::string& a, const std::string& b) const;

  std::filesystem::path dir_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, size_t> file_by_name_;    // stored name -> position in files_
  std::map<std::string, std::string> stored_as_;  // expected name -> stored name, where they differ
};

// state.json of a checkpoint; UserError when it is missing or not JSON.
nlohmann::json read_state(const std::filesystem::path& checkpoint);

}  // namespace megalith
