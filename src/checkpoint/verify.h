// Is every byte of a checkpoint what was written?
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace megalith {

struct VerifyProblem {
  std::string file;  // name inside the checkpoint
  std::string what;  // "missing", "4096 bytes, should be 8192", "bytes 0..4095 differ from what was written"
};

struct VerifyResult {
  std::vector<VerifyProblem> problems;
  int64_t files = 0;    // named by the manifest and looked at
  int64_t extents = 0;  // whose hash was compared
  int64_t bytes = 0;    // hashed
  bool ok() const { return problems.empty(); }
};

// `model`: weights, config.json, tokenizer; without the optimizer's state, which is twice their size.
enum class VerifyPart { all, model };

// Lists every problem; throws only when memory runs out. Files that the manifest does not name are not looked
// at.
VerifyResult verify(const std::filesystem::path& dir, VerifyPart part = VerifyPart::all);

std::string show(const VerifyProblem& problem);  // "model.safetensors: missing"

}  // namespace megalith
