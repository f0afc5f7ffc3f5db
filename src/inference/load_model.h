// Loads weights and optimizer state from a folder into a model's buffers.
#pragma once
#include <filesystem>
#include <optional>

#include "engine/engine.h"

namespace megalith {

// Loads parameters from a Megalith checkpoint or a Hugging Face folder. Throws a UserError that lists names that differ.
void load_parameters(StatePieces& model, const std::filesystem::path& folder);
// How a new run starts from a folder.
struct StartingPoint {
  std::filesystem::path folder;
  bool new_head = false;  // the head gets initial weights of `seed`; the folder's head is not read
  uint64_t seed = 0;
};
// Loads parameters for a new run, and zeroes the optimizer state.
void start_from(StatePieces& model, const StartingPoint& start);
// Loads optimizer state from a Megalith checkpoint.
void load_optimizer(StatePieces& model, const std::filesystem::path& checkpoint);

// An engine for generation and evaluation with the weights of a checkpoint, a run or a Hugging Face folder.
struct LoadedModel {
  std::filesystem::path folder;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<class Tokenizer> tokenizer;  // null if the folder has no tokenizer
  LoadedModel();
  ~LoadedModel();
  LoadedModel(LoadedModel&&) noexcept;
};
// `head`: what the model is used for, if this differs from what the folder says.
LoadedModel load_model(const std::filesystem::path& path, std::optional<HeadKind> head = {});

// Throws UserError: the folder of a model has no tokenizer.
[[noreturn]] void refuse_without_tokenizer(const std::filesystem::path& folder);

}  // namespace megalith
