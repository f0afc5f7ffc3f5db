// Assigns tensors to files, and writes the index file that Hugging Face needs.
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/writer.h"

namespace megalith {

std::vector<FileSpec> plan_files(std::vector<TensorSpec> tensors, int64_t shard_limit,
                                 const std::string& stem, Numbering numbering) {
  MEGALITH_ASSERT(shard_limit > 0);
  std::vector<FileSpec> files;
  int64_t size = 0;
  for (TensorSpec& tensor : tensors) {
    int64_t bytes = tensor.bytes();
    if (files.empty() || size > shard_limit - bytes) {
      files.emplace_back();
      size = 0;
    }
    size += bytes;
    files.back().tensors.push_back(std::move(tensor));
  }
  bool numbered = files.size() > 1 || numbering == Numbering::always;
  for (size_t i = 0; i < files.size(); i++)
    files[i].file = numbered ? fmt::format("{}-{:05}-of-{:05}.safetensors", stem, i + 1, files.size())
                             : stem + ".safetensors";
  return files;
}

std::vector<std::pair<std::string, std::string>> index_file(const std::vector<FileSpec>& model_files) {
  if (model_files.size() < 2) return {};
  int64_t total = 0;
  nlohmann::ordered_json map;
  for (const FileSpec& file : model_files)
    for (const TensorSpec& tensor : file.tensors) {
      map[tensor.name] = file.file;
      total += tensor.bytes();
    }
  nlohmann::ordered_json index{{"metadata", {{"total_size", total}}}, {"weight_map", std::move(map)}};
  return {{"model.safetensors.index.json", print_json(index, 2) + "\n"}};
}

}  // namespace megalith
