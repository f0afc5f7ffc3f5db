#include "commands/loaded_model.h"

#include "base/error.h"

namespace megalith {

LoadedModel load_with_tokenizer(const std::string& path) {
  LoadedModel model = load_model(path);
  if (!model.tokenizer) refuse_without_tokenizer(model.folder);
  if (model.engine->shape().head == HeadKind::representation)
    throw UserError({model.folder.string(), "", "a model that predicts tokens", "a model that turns texts into vectors",
                     "use megalith embed"});
  return model;
}

}  // namespace megalith
