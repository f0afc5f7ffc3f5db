#include "commands/loaded_model.h"

#include "base/error.h"

namespace megalith {

LoadedModel load_with_tokenizer(const std::string& path) {
  LoadedModel model = load_model(path);
  if (!model.tokenizer)
    throw UserError({model.folder.string(), "tokenizer.json", "a tokenizer in the folder of the model", "nothing",
                     "copy the tokenizer of the model into the folder"});
  return model;
}

}  // namespace megalith
