#include "train/load_model.h"

#include "base/error.h"
#include "base/log.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/reader.h"
#include "checkpoint/store.h"
#include "text/tokenizer.h"

namespace megalith {
namespace {

template <class PartsOf>
void read_all(ModelState& model, WeightSource source, const PartsOf& parts_of) {
  std::vector<TensorSpec> expected;
  std::vector<NamedPart> parts;
  for (BlockId b = 0; b < static_cast<BlockId>(model.size()); b++)
    for (NamedPart& part : parts_of(b)) {
      expected.push_back({part.name, DType::f32, part.shape});
      parts.push_back(std::move(part));
    }
  source.check_matches(expected);
  for (const NamedPart& part : parts) source.read_f32(part.name, 0, part.values);
}

}  // namespace

void load_parameters(ModelState& model, const std::filesystem::path& folder) {
  read_all(model, WeightSource::open_model(folder), [&](BlockId b) { return model.parameters(b); });
  model.values_changed();
}

void load_optimizer(ModelState& model, const std::filesystem::path& checkpoint) {
  read_all(model, WeightSource::open_optimizer(checkpoint), [&](BlockId b) { return model.optimizer_state(b); });
}

LoadedModel::LoadedModel() = default;
LoadedModel::~LoadedModel() = default;
LoadedModel::LoadedModel(LoadedModel&&) noexcept = default;

LoadedModel load_model(const std::filesystem::path& path) {
  LoadedModel loaded;
  loaded.folder = find_model_folder(path, [](const std::string& message) { log::warn("{}", message); });
  ModelShape shape = read_hf_config(loaded.folder);
  loaded.engine = std::make_unique<Engine>(shape, TrainSettings{}, 0, /*training=*/false);
  load_parameters(loaded.engine->model(), loaded.folder);
  loaded.tokenizer = tokenizer_of_folder(loaded.folder);
  return loaded;
}

}  // namespace megalith
