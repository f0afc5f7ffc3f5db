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

// `parts_of` returns the names and shapes of a block's parts.
template <class PartsOf>
std::vector<TensorSpec> tensors_of(const StatePieces& model, const PartsOf& parts_of) {
  std::vector<TensorSpec> tensors;
  for (BlockId b = 0; b < static_cast<BlockId>(model.blocks()); b++)
    for (const TensorPiece& part : parts_of(b)) tensors.push_back({part.name, part.type, part.shape});
  return tensors;
}

void read(const WeightSource& source, const TensorPiece& piece) {
  if (piece.type == DType::f32) source.read_f32(piece.name, piece.begin, piece.values);
  else source.read_exactly(piece.name, piece.type, piece.begin, piece.packed);
}

// `seed` gives the weights of a fresh head.
void load_weights(StatePieces& model, const WeightSource& source, const HeadTensors& head, uint64_t seed) {
  for (BlockId b = 0; b < static_cast<BlockId>(model.blocks()); b++)
    model.write_parameters(b, [&](const TensorPiece& piece) {
      if (head.use == HeadUse::fresh && head.has(piece.name)) model.fill_initial(b, seed, piece);
      else read(source, piece);
    });
}

WeightSource open_weights(StatePieces& model, const std::filesystem::path& folder, const HeadTensors& head) {
  WeightSource source = WeightSource::open_model(folder);
  source.check_matches(tensors_of(model, [&](BlockId b) { return model.parameters(b); }), head);
  return source;
}

}  // namespace

void load_parameters(StatePieces& model, const std::filesystem::path& folder) {
  const HeadTensors head = head_of(model.shape(), HeadUse::required);
  load_weights(model, open_weights(model, folder, head), head, 0);
}

void start_from(StatePieces& model, const StartingPoint& start) {
  const HeadTensors head = head_of(model.shape(), start.new_head ? HeadUse::fresh : HeadUse::replaceable);
  const WeightSource source = open_weights(model, start.folder, head);
  if (start.new_head)
    log::info("model.new_head: starting a new {}{}", head.what,
              source.has_any_head(head) ? fmt::format("; the head in {} is not used", start.folder.string()) : "");
  load_weights(model, source, head, start.seed);
  model.zero_optimizer();
}

void load_optimizer(StatePieces& model, const std::filesystem::path& checkpoint) {
  WeightSource source = WeightSource::open_optimizer(checkpoint);
  source.check_matches(tensors_of(model, [&](BlockId b) { return model.optimizer_state(b); }));
  for (BlockId b = 0; b < static_cast<BlockId>(model.blocks()); b++)
    model.write_optimizer(b, [&](const TensorPiece& piece) { read(source, piece); });
}

void refuse_without_tokenizer(const std::filesystem::path& folder) {
  throw UserError({folder.string(), "tokenizer.json", "a tokenizer in the folder of the model", "nothing",
                   "copy the tokenizer of the model into the folder"});
}

LoadedModel::LoadedModel() = default;
LoadedModel::~LoadedModel() = default;
LoadedModel::LoadedModel(LoadedModel&&) noexcept = default;

LoadedModel load_model(const std::filesystem::path& path, std::optional<HeadKind> head) {
  LoadedModel loaded;
  loaded.folder = find_model_folder(path, [](const std::string& message) { log::warn("{}", message); });
  ModelShape shape = read_hf_config(loaded.folder);
  if (head) shape.head = *head;
  loaded.engine = std::make_unique<Engine>(shape, TrainSettings{}, 0, /*training=*/false);
  load_parameters(loaded.engine->state(), loaded.folder);
  loaded.tokenizer = tokenizer_of_folder(loaded.folder);
  return loaded;
}

}  // namespace megalith
