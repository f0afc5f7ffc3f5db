// The files with which sentence-transformers opens a model folder: how outputs become the vector of a text.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "families/model_shape.h"

namespace megalith {

struct SentenceForm {
  Pooling pooling = Pooling::mean;
  bool unit_length = false;  // vectors are divided by their length
  int64_t longest = 0;       // tokens of a text, with special tokens; the rest is cut off. 0: the model's context
};

// Returns null if the folder is not one of sentence-transformers. Throws UserError that names what we do not compute: a
// module (Dense), a pooling mode (max), a prompt that is put before every text.
std::optional<SentenceForm> read_sentence_form(const std::filesystem::path& folder);

// Returns the files as name -> content.
std::vector<std::pair<std::string, std::string>> sentence_files(const SentenceForm& form, const ModelShape& shape);

// The names of these files, for copies of a folder.
std::vector<std::string> sentence_file_names();

}  // namespace megalith
