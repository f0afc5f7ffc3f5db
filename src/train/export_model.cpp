#include "train/export_model.h"

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/log.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/reader.h"
#include "checkpoint/store.h"
#include "checkpoint/writer.h"
#include "model/block_spec.h"
#include "text/tokenizer.h"
#include "train/saver.h"

namespace megalith {
namespace {

constexpr int64_t kPiece = int64_t{4} << 20;  // elements in memory at once

}  // namespace

void export_model(const std::filesystem::path& from, const std::filesystem::path& out, DType dtype) {
  check_new_folder(out);
  const std::filesystem::path folder = find_model_folder(from, [](const std::string& m) { log::warn("{}", m); });
  const ModelShape shape = read_hf_config(folder);
  std::vector<TensorSpec> tensors;
  for (const BlockSpec& block : list_blocks(shape))
    for (const ParameterSpec& p : block.parameters) tensors.push_back({p.name, dtype, p.shape});
  WeightSource source = WeightSource::open_model(folder);
  source.check_matches(tensors);

  SpecialIds ids;
  std::vector<std::pair<std::string, std::string>> small_files;
  if (std::filesystem::exists(folder / "tokenizer.json")) {
    auto tokenizer = load_tokenizer(folder / "tokenizer.json");
    ids = {tokenizer->begin_token(), tokenizer->end_token()};
    small_files = tokenizer->files();
  }
  small_files.emplace_back("config.json", hf_config(shape, ids, dtype));
  std::vector<FileSpec> files = plan_files(tensors, kShardLimit);
  for (auto& index : index_file(files)) small_files.push_back(std::move(index));

  CheckpointWriter writer(out, files, small_files);
  std::vector<float> values;
  std::vector<std::byte> bytes;
  for (const FileSpec& file : files)
    for (const TensorSpec& tensor : file.tensors)
      for (int64_t begin = 0; begin < tensor.elements(); begin += kPiece) {
        values.resize(static_cast<size_t>(std::min(kPiece, tensor.elements() - begin)));
        source.read_f32(tensor.name, begin, values);
        bytes.resize(values.size() * static_cast<size_t>(size_of(dtype)));
        from_f32(dtype, values, bytes);
        writer.write(file.file, tensor.name, begin, bytes);
      }
  writer.commit(nlohmann::json(nullptr));
}

}  // namespace megalith
