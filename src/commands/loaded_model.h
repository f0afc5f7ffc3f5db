// Loads models for commands.
#pragma once
#include <string>

#include "inference/load_model.h"
#include "text/tokenizer.h"

namespace megalith {

// Throws UserError if the folder has no tokenizer.
LoadedModel load_with_tokenizer(const std::string& path);

}  // namespace megalith
