#include "tools/export_model.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/log.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/sentence_files.h"
#include "checkpoint/model_tensors.h"
#include "checkpoint/reader.h"
#include "checkpoint/store.h"
#include "checkpoint/weight_names.h"
#include "checkpoint/writer.h"
#include "text/tokenizer.h"

namespace megalith {
namespace {

constexpr int64_t kExportElements = int64_t{1} << 20;  // elements in memory at once

// Files that other programs store next to weights and tokenizer. They are copied unchanged.
constexpr const char* kCompanions[] = {"vocab.txt", "tokenizer_config.json", "special_tokens_map.json",
                                       "generation_config.json", "chat_template.jinja"};

bool contains(const std::vector<std::pair<std::string, std::string>>& files, const std::string& name) {
  return std::any_of(files.begin(), files.end(), [&](const auto& file) { return file.first == name; });
}

}  // namespace

DType stored_type(const WeightSource& source) {
  std::optional<DType> type;
  for (const TensorSpec& tensor : source.tensors()) {
    if (!is_float(tensor.dtype)) continue;
    if (type && *type != tensor.dtype) return DType::f32;
    type = tensor.dtype;
  }
  return type == DType::bf16 || type == DType::f16 ? *type : DType::f32;
}

void write_model(const std::filesystem::path& folder, const ModelShape& shape, DType dtype, const std::filesystem::path& out,
                 const ReadTensor& read) {
  SpecialIds ids = read_hf_special_ids(folder);
  std::vector<std::pair<std::string, std::string>> small_files;
  if (auto tokenizer = tokenizer_of_folder(folder)) {
    if (!ids.begin) ids.begin = tokenizer->begin_token();
    if (!ids.end) ids.end = tokenizer->end_token();
    small_files = tokenizer->files();
  }
  std::vector<std::string> companions(std::begin(kCompanions), std::end(kCompanions));
  std::ranges::copy(sentence_file_names(), std::back_inserter(companions));
  for (const std::string& name : companions)
    if (std::filesystem::exists(folder / name) && !contains(small_files, name))
      small_files.emplace_back(name, read_file(folder / name));
  small_files.emplace_back("config.json", hf_config(shape, ids, dtype));
  std::vector<FileSpec> files = plan_files(with_copies(tensors_of(shape, dtype)), kShardLimit);
  for (auto& index : index_file(files)) small_files.push_back(std::move(index));

  CheckpointWriter writer(out, files, small_files);
  std::vector<float> values;
  std::vector<std::byte> bytes;
  for (const FileSpec& file : files)
    for (const TensorSpec& tensor : file.tensors)
      for (int64_t begin = 0; begin < tensor.elements(); begin += kExportElements) {
        values.resize(static_cast<size_t>(std::min(kExportElements, tensor.elements() - begin)));
        read(tensor.name, begin, values);
        bytes.resize(values.size() * static_cast<size_t>(size_of(dtype)));
        from_f32(dtype, values, bytes);
        writer.write(file.file, tensor.name, begin, bytes);
      }
  writer.commit(nlohmann::json(nullptr));
}

void export_model(const std::filesystem::path& from, const std::filesystem::path& out, std::optional<DType> wanted) {
  check_new_folder(out);
  const std::filesystem::path folder = find_model_folder(from, [](const std::string& m) { log::warn("{}", m); });
  const ModelShape shape = read_hf_config(folder);
  WeightSource source = WeightSource::open_model(folder);
  const DType dtype = wanted.value_or(stored_type(source));
  source.check_matches(tensors_of(shape, dtype), head_of(shape, HeadUse::required));
  write_model(folder, shape, dtype, out, [&](const std::string& name, int64_t begin, std::span<float> values) {
    source.read_f32(name, begin, values);
  });
}

}  // namespace megalith
