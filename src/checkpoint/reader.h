// Reads the tensors of a folder: a checkpoint of ours or of Hugging Face, in one file or several.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/head_tensors.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_spec.h"

namespace megalith {

class WeightSource {
 public:
  // Opens model.safetensors, or the files in model.safetensors.index.json.
  static WeightSource open_model(const std::filesystem::path& dir);
  // Opens optimizer-*.safetensors. A folder without such files has no tensors.
  static WeightSource open_optimizer(const std::filesystem::path& dir);

  const std::filesystem::path& dir() const { return dir_; }
  std::vector<TensorSpec> tensors() const;  // with the names in the files, sorted
  bool has(const std::string& name) const;

  // Throws UserError unless the folder contains exactly these tensors. The error lists tensors that are missing,
  // unexpected or of another shape. Types of floating-point numbers may differ. Some differences are accepted, and the
  // tensor is then read under the expected name:
  // - a missing or extra leading "transformer.", "bert." or "model."
  // - LayerNorm.gamma/beta
  // - a tied head stored instead of its table, or beside it with equal values
  // - a parameter stored only as its copy (copy_in_files)
  // A copy can be read by its own name, stored or not. Buffers, and heads that are not parameters of ours, are ignored.
  // With HeadUse::fresh, tensors of the head are neither expected nor read, and any other head is ignored. If only the
  // head is missing, the error says so.
  void check_matches(const std::vector<TensorSpec>& expected, const HeadTensors& head = {});
  // True if the folder has a tensor of this head or of another one.
  bool has_any_head(const HeadTensors& head) const;

  // Reads elements from element_offset on, until `out` is full. Accepts float64/32/16 and bfloat16. Thread-safe.
  void read_f32(const std::string& name, int64_t element_offset, std::span<float> out) const;
  // Reads elements as they are stored, from element_offset on. Throws UserError unless they have this type.
  void read_exactly(const std::string& name, DType dtype, int64_t element_offset, std::span<std::byte> out) const;

 private:
  explicit WeightSource(std::filesystem::path dir) : dir_(std::move(dir)) {}
  void add_file(const std::filesystem::path& path);
  struct Mismatch {
    std::vector<std::string> missing, misshapen, extra;
  };
  // Throws UserError if all tensors of the head are missing and everything else is right.
  void refuse_without_head(const Mismatch& wrong, size_t expected, const HeadTensors& head) const;
  // True if the tensor belongs to a head: it is not part of the model below the head. Always false for a folder that has
  // only this model (a bare model).
  bool of_another_head(const std::string& stored, const HeadTensors& head) const;
  const TensorSpec& spec_of(const std::string& stored) const;
  std::string name_in_files(const std::string& name) const;  // in any spelling; empty: no such tensor
  const std::string& stored_name(const std::string& name) const;  // throws UserError for an unknown name
  bool same_values(const std::string& a, const std::string& b) const;

  std::filesystem::path dir_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, size_t> file_by_name_;    // stored name -> position in files_
  std::map<std::string, std::string> stored_as_;  // expected name -> stored name
};

// Reads state.json of a checkpoint. Throws UserError if it is missing or not JSON.
nlohmann::json read_state(const std::filesystem::path& checkpoint);

}  // namespace megalith
