#include "inference/load_model.h"

#include "base/error.h"
#include "base/log.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/reader.h"
#include "checkpoint/store.h"
#include "engine/state_pieces.h"
#include "text/tokenizer.h"

namespace megalith {
namespace {

// `parts_of` returns the names and shapes of a block's parts. `write` calls a function that fills each piece of them.
template <class PartsOf, class Write>
void read_all(StatePieces& model, WeightSource source, const PartsOf& parts_of, const Write& write) {
  std::vector<TensorSpec> expected;
  const auto blocks = static_cast<BlockId>(model.blocks());
  for (BlockId b = 0; b < blocks; b++)
    for (const TensorPiece& part : parts_of(b)) expected.push_back({part.name, part.type, part.shape});
  source.check_matches(expected);
  for (BlockId b = 0; b < blocks; b++)
    write(b, [&](const TensorPiece& piece) {
      if (piece.type == DType::f32) source.read_f32(piece.name, piece.begin, piece.values);
      else source.read_exactly(piece.name, piece.type, piece.begin, piece.packed);
    });
}

}  // namespace

void load_parameters(StatePieces& model, const std::filesystem::path& folder) {
  read_all(model, WeightSource::open_model(folder), [&](BlockId b) { return model.parameters(b); },
           [&](BlockId b, const PieceWork& fill) { model.write_parameters(b, fill); });
}

void start_from(StatePieces& model, const std::filesystem::path& folder) {
  load_parameters(model, folder);
  model.zero_optimizer();
}

void load_optimizer(StatePieces& model, const std::filesystem::path& checkpoint) {
  read_all(model, WeightSource::open_optimizer(checkpoint), [&](BlockId b) { return model.optimizer_state(b); },
           [&](BlockId b, const PieceWork& fill) { model.write_optimizer(b, fill); });
}

LoadedModel::LoadedModel() = default;
LoadedModel::~LoadedModel() = default;
LoadedModel::LoadedModel(LoadedModel&&) noexcept = default;

LoadedModel load_model(const std::filesystem::path& path) {
  LoadedModel loaded;
  loaded.folder = find_model_folder(path, [](const std::string& message) { log::warn("{}", message); });
  ModelShape shape = read_hf_config(loaded.folder);
  loaded.engine = std::make_unique<Engine>(shape, TrainSettings{}, 0, /*training=*/false);
  load_parameters(loaded.engine->state(), loaded.folder);
  loaded.tokenizer = tokenizer_of_folder(loaded.folder);
  return loaded;
}

}  // namespace megalith
