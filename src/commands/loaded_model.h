// Models as commands need them.
#pragma once
#include <string>

#include "text/tokenizer.h"
#include "train/load_model.h"

namespace megalith {

// UserError where there is no tokenizer beside the weights.
LoadedModel load_with_tokenizer(const std::string& path);

}  // namespace megalith
