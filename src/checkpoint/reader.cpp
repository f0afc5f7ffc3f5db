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

void WeightSource::refuse_without_head(const Mismatch& wrong, size_t expected, const HeadTensors& head) const {
  const auto is_of = [&](const std::string& name) { return head.has(name); };
  const auto foreign = [&](const std::string& stored) { return of_another_head(stored, head); };
  if (head.names.empty() || wrong.missing.size() != head.names.size() || !std::ranges::all_of(wrong.missing, is_of) ||
      !wrong.misshapen.empty() || !std::ranges::all_of(wrong.extra, foreign))
    return;
  throw UserError({dir_.string(), "", fmt::format("the {} tensors of the model", expected),
                   fmt::format("{} of them", expected - wrong.missing.size()),
                   fmt::format("the folder has no {}; {} `model.new_head: true` to start one", head.what,
                               head.use == HeadUse::replaceable ? "set" : "train from it with")});
}

bool WeightSource::of_another_head(const std::string& stored, const HeadTensors& head) const {
  if (head.base.empty() || stored.starts_with(head.base)) return false;
  const auto next = file_by_name_.lower_bound(std::string(head.base));  // a bare model has no name with the prefix
  return next != file_by_name_.end() && next->first.starts_with(head.base);
}

bool WeightSource::has_any_head(const HeadTensors& head) const {
  return std::ranges::any_of(head.names, [&](const std::string& name) { return !name_in_files(name).empty(); }) ||
         std::ranges::any_of(file_by_name_, [&](const auto& file) { return of_another_head(file.first, head); });
}

std::string WeightSource::name_in_files(const std::string& name) const {
  for (const std::string& candidate : other_spellings(name))
    if (file_by_name_.contains(candidate)) return candidate;
  return "";
}

void WeightSource::check_matches(const std::vector<TensorSpec>& expected, const HeadTensors& head) {
  stored_as_.clear();
  const bool new_head = head.use == HeadUse::fresh;
  std::set<std::string> wanted, used;
  for (const TensorSpec& spec : expected) wanted.insert(spec.name);
  std::map<std::string, std::string> found;  // expected name -> stored name
  Mismatch wrong;
  auto match = [&](const TensorSpec& spec, const std::string& stored) {
    const TensorSpec& there = spec_of(stored);
    if (there.shape != spec.shape)
      wrong.misshapen.push_back(
          fmt::format("{} {} instead of {}", stored, show_shape(there.shape), show_shape(spec.shape)));
    else if (!is_float(there.dtype) && there.dtype != spec.dtype)
      wrong.misshapen.push_back(fmt::format("{} of type {}", stored, safetensors_name(there.dtype)));
    found[spec.name] = stored;
    used.insert(stored);
  };
  for (const TensorSpec& spec : expected) {
    std::string stored = name_in_files(spec.name);
    if (std::string twin = tied_to(spec.name); stored.empty() && !twin.empty() && !wanted.contains(twin))
      stored = name_in_files(twin);
    const std::string copy = copy_in_files(spec.name), stored_copy = copy.empty() ? "" : name_in_files(copy);
    if (new_head && head.has(spec.name)) {
      used.insert({stored, stored_copy});
      continue;
    }
    if (stored.empty()) stored = stored_copy;
    if (stored.empty()) {
      wrong.missing.push_back(spec.name);
      continue;
    }
    match(spec, stored);
    if (!copy.empty()) match({copy, spec.dtype, spec.shape}, stored_copy.empty() ? stored : stored_copy);
  }

  for (const auto& [stored, file] : file_by_name_) {
    if (used.contains(stored) || is_no_parameter(stored) || (new_head && of_another_head(stored, head))) continue;
    std::string table = table_behind(stored, wanted);
    if (table.empty()) {
      wrong.extra.push_back(stored);
    } else if (wanted.contains(table) && found.contains(table) && !same_values(stored, found[table])) {
      wrong.extra.push_back(fmt::format("{} (differs from {}, but config.json ties them)", stored, found[table]));
    }
  }

  if (wrong.missing.empty() && wrong.misshapen.empty() && wrong.extra.empty()) {
    stored_as_ = std::move(found);
    return;
  }
  refuse_without_head(wrong, expected.size(), head);
  std::vector<std::string> got;
  if (!wrong.missing.empty()) got.push_back("no tensor named " + some_of(wrong.missing));
  if (!wrong.misshapen.empty()) got.push_back(some_of(wrong.misshapen));
  if (!wrong.extra.empty()) got.push_back("unexpected tensors " + some_of(wrong.extra));
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
                     "set train.optimizer_state to the format that the checkpoint was written with"});
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
