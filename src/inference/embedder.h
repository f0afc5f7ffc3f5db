// Turns texts into vectors.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "checkpoint/sentence_files.h"
#include "inference/load_model.h"
#include "text/tokenizer.h"

namespace megalith {

// Divides a vector by its length.
void divide_by_length(std::span<float> vector);

class Embedder {
 public:
  // Borrows the model, which has a tokenizer. Texts with more tokens than `form.longest` lose their ends.
  Embedder(LoadedModel& model, SentenceForm form);
  // Returns one vector of `width` numbers per text, in the order of the texts. Computes several texts of similar length at
  // once.
  std::vector<float> embed(std::span<const std::string> texts);
  int64_t width() const { return model_.engine->shape().hidden; }
  int64_t cut_off() const { return cut_off_; }  // number of texts that were too long

 private:
  std::vector<int64_t> tokens_of(const std::string& text);

  LoadedModel& model_;
  SentenceForm form_;
  int64_t special_after_;  // special tokens that the tokenizer puts after a text
  int64_t cut_off_ = 0;
};

// A model loaded for vectors, and how it makes them.
struct EmbeddingModel {
  LoadedModel model;
  SentenceForm form;
  bool form_is_known = false;  // the folder says how it makes vectors; else the mean of the outputs is used
};
// Throws UserError if the folder has no tokenizer. The head of a model that predicts tokens is not used.
EmbeddingModel load_embedding_model(const std::filesystem::path& path);

}  // namespace megalith
