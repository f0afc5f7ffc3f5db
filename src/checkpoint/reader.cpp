#include "checkpoint/reader.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/join.h"
#include "base/json.h"
#include "checkpoint/manifest.h"
#include "checkpoint/weight_names.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> files_of_index(const fs::path& path) {
  nlohmann::json index = try_parse_json(read_file(path), path.string());
  auto refuse = [&](const std::string& expected, const std::string& got) {
    throw UserError({path.string(), "weight_map", expected, got, "the index is damaged"});
  };
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    refuse("an object that maps tensors to files", "no such object");
  std::set<std::string> files;
  for (const auto& [name, file] : index["weight_map"].items()) {
    if (!file.is_string() || !is_plain_name(file.get_ref<const std::string&>()))
      refuse("the name of a file in this folder",
             print_ascii_json(file));
    files.insert(file.get<std::string>());
  }
  return {files.begin(), files.end()};
}

}  // namespace

WeightSource WeightSource::open_model(const fs::path& dir) {
  WeightSource source(dir);
  fs::path single = dir / "model.safetensors", index = dir / "model.safetensors.index.json";
  std::error_code error;
  if (fs::exists(single, error)) {
    source.add_file(single);
  } else if (fs::exists(index, error)) {
    for (const std::string& file : files_of_index(index)) source.add_file(dir / file);
  } else {
    throw UserError({dir.string(), "", "model.safetensors or model.safetensors.index.json",
                     fs::exists(dir / "pytorch_model.bin", error) ? "pytorch_model.bin" : "neither",
                     "save the model with save_pretrained of transformers"});
  }
  return source;
}

WeightSource WeightSource::open_optimizer(const fs::path& dir) {
  WeightSource source(dir);
  std::set<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (name.starts_with("optimizer-") && name.ends_with(".safetensors")) paths.insert(it->path());
  }
  for (const fs::path& path : paths) source.add_file(path);
  return source;
}

void WeightSource::add_file(const fs::path& path) {
  SafetensorsFile file(path);
  for (const TensorEntry& tensor : file.tensors())
    if (auto [at, inserted] = file_by_name_.try_emplace(tensor.spec.name, files_.size()); !inserted)
      throw UserError({path.string(), tensor.spec.name, "each tensor in one file only",
                       "the same tensor also in " + files_[at->second].path().filename().string(), ""});
  files_.push_back(std::move(file));
}

const TensorSpec& WeightSource::spec_of(const std::string& stored) const {
  return files_[file_by_name_.at(stored)].find(stored)->spec;
}

std::vector<TensorSpec> WeightSource::tensors() const {
  std::vector<TensorSpec> specs;
  for (const auto& [name, file] : file_by_name_) specs.push_back(spec_of(name));
  return specs;
}

bool WeightSource::has(const std::string& name) const {
  return file_by_name_.contains(name) || stored_as_.contains(name);
}

bool WeightSource::same_values(const std::string& a, const std::string& b) const {
  const TensorSpec &sa = spec_of(a), &sb = spec_of(b);
  if (sa.shape != sb.shape || !is_float(sa.dtype) || !is_float(sb.dtype)) return false;
  constexpr int64_t chunk = 1 << 18;
  std::vector<float> va, vb;
  for (int64_t done = 0, count = sa.elements(); done < count; done += chunk) {
    va.resize(static_cast<size_t>(std::min(chunk, count - done)));
    vb.resize(va.size());
    read_f32(a, done, va);
    read_f32(b, done, vb);
    if (std::memcmp(va.data(), vb.data(), va.size() * sizeof(float)) != 0) return false;
  }
  return true;
}

void WeightSource::check_matches(const std::vector<TensorSpec>& expected) {
  stored_as_.clear();
  std::set<std::string> wanted, used;
  for (const TensorSpec& spec : expected) wanted.insert(spec.name);
  auto stored_name = [&](const std::string& name) -> std::string {
    for (const std::string& candidate : other_spellings(name))
      if (file_by_name_.contains(candidate)) return candidate;
    return "";
  };

  std::map<std::string, std::string> found;  // expected name -> stored name
  std::vector<std::string> missing, misshapen, extra;
  auto match = [&](const TensorSpec& spec, const std::string& stored) {
    const TensorSpec& there = spec_of(stored);
    if (there.shape != spec.shape)
      misshapen.push_back(
          fmt::format("{} {} instead of {}", stored, show_shape(there.shape), show_shape(spec.shape)));
    else if (!is_float(there.dtype) && there.dtype != spec.dtype)
      misshapen.push_back(fmt::format("{} of type {}", stored, safetensors_name(there.dtype)));
    found[spec.name] = stored;
    used.insert(stored);
  };
  for (const TensorSpec& spec : expected) {
    std::string stored = stored_name(spec.name);
    if (std::string twin = tied_to(spec.name); stored.empty() && !twin.empty() && !wanted.contains(twin))
      stored = stored_name(twin);
    const std::string copy = copy_in_files(spec.name), stored_copy = copy.empty() ? "" : stored_name(copy);
    if (stored.empty()) stored = stored_copy;
    if (stored.empty()) {
      missing.push_back(spec.name);
      continue;
    }
    match(spec, stored);
    if (!copy.empty()) match({copy, spec.dtype, spec.shape}, stored_copy.empty() ? stored : stored_copy);
  }

  for (const auto& [stored, file] : file_by_name_) {
    if (used.contains(stored) || is_no_parameter(stored)) continue;
    std::string table = table_behind(stored, wanted);
    if (table.empty()) {
      extra.push_back(stored);
    } else if (wanted.contains(table) && found.contains(table) && !same_values(stored, found[table])) {
      extra.push_back(fmt::format("{} (differs from {}, but config.json ties them)", stored, found[table]));
    }
  }

  if (missing.empty() && misshapen.empty() && extra.empty()) {
    stored_as_ = std::move(found);
    return;
  }
  std::vector<std::string> got;
  if (!missing.empty()) got.push_back("no tensor named " + some_of(missing));
  if (!misshapen.empty()) got.push_back(some_of(misshapen));
  if (!extra.empty()) got.push_back("unexpected tensors " + some_of(extra));
  throw UserError({dir_.string(), "", fmt::format("the {} tensors of the model", expected.size()),
                   join(got, "; "), "use weights that belong to this config.json"});
}

const std::string& WeightSource::stored_name(const std::string& name) const {
  auto renamed = stored_as_.find(name);
  const std::string& stored = renamed == stored_as_.end() ? name : renamed->second;
  if (!file_by_name_.contains(stored))
    throw UserError({dir_.string(), name, "a tensor with this name", "no such tensor", ""});
  return stored;
}

void WeightSource::read_f32(const std::string& name, int64_t element_offset, std::span<float> out) const {
  const std::string& stored = stored_name(name);
  files_[file_by_name_.at(stored)].read_f32(stored, element_offset, out);
}

void WeightSource::read_exactly(const std::string& name, DType dtype, int64_t element_offset,
                                std::span<std::byte> out) const {
  const std::string& stored = stored_name(name);
  if (const DType there = spec_of(stored).dtype; there != dtype)
    throw UserError({dir_.string(), stored, std::string(safetensors_name(dtype)), std::string(safetensors_name(there)),
                     "use the format that the checkpoint was written with"});
  files_[file_by_name_.at(stored)].read_bytes(stored, element_offset, out);
}

nlohmann::json read_state(const fs::path& checkpoint) {
  fs::path path = checkpoint / "state.json";
  nlohmann::json state = try_parse_json(read_file(path), path.string());
  if (!state.is_object())
    throw UserError({path.string(), "", "a JSON object", "something else", "the checkpoint is damaged"});
  return state;
}

}  // namespace megalith
