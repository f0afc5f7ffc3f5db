// Checks whether every byte of a checkpoint is what was written.
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
  int64_t files = 0;    // files that the manifest lists and that were checked
  int64_t extents = 0;  // number of extents whose hash was compared
  int64_t bytes = 0;    // bytes hashed
  bool ok() const { return problems.empty(); }
};

// `model`: weights, config.json and tokenizer, but not the optimizer's state, which is twice their size.
enum class VerifyPart { all, model };

// Lists every problem. Throws only if memory runs out. Ignores files that the manifest does not list.
VerifyResult verify(const std::filesystem::path& dir, VerifyPart part = VerifyPart::all);

std::string show(const VerifyProblem& problem);  // "model.safetensors: missing"

}  // namespace megalith
