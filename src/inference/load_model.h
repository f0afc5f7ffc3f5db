// Weights and optimizer state from a folder into a model's buffers.
#pragma once
#include <filesystem>

#include "engine/engine.h"

namespace megalith {

// Parameters from a checkpoint of ours or a Hugging Face folder. UserError listing names that do not match.
void load_parameters(StatePieces& model, const std::filesystem::path& folder);
// The same for a run that begins with them: its optimizer state is empty.
void start_from(StatePieces& model, const std::filesystem::path& folder);
// Optimizer state from a checkpoint of ours.
void load_optimizer(StatePieces& model, const std::filesystem::path& checkpoint);

// An engine for generation and evaluation with the weights of a checkpoint, a run or a Hugging Face folder.
struct LoadedModel {
  std::filesystem::path folder;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<class Tokenizer> tokenizer;  // null where the folder has none
  LoadedModel();
  ~LoadedModel();
  LoadedModel(LoadedModel&&) noexcept;
};
LoadedModel load_model(const std::filesystem::path& path);

}  // namespace megalith
