#include "commands/loaded_model.h"

#include "base/error.h"

namespace megalith {

LoadedModel load_with_tokenizer(const std::string& path) {
  LoadedModel model = load_model(path);
  if (!model.tokenizer)
    throw UserError({model.folder.string(), "tokenizer.json", "a tokenizer beside the weights", "none",
                     "copy the tokenizer that the model was trained with into the folder"});
  return model;
}

}  // namespace megalith
