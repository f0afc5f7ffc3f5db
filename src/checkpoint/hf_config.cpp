#include "checkpoint/hf_config.h"

#include <nlohmann/json.hpp>

#include "base/either.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "checkpoint/sentence_files.h"
#include "families/hf_fields.h"
#include "families/registry.h"

namespace megalith {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

ordered_json id_or_null(std::optional<int64_t> id) {
  return id ? ordered_json(*id) : ordered_json();
}

// Returns the family that reads this model_type, or null.
const Family* family_of_type(const std::string& model_type) {
  for (const Family* family : families()) {
    const HfNames names = family->hf_names();
    for (const auto& types : {names.model_types, names.own_model_types})
      for (std::string_view type : types)
        if (type == model_type) return family;
  }
  return nullptr;
}

std::string known_types() {
  std::vector<std::string_view> all;
  for (const Family* family : families())
    for (std::string_view type : family->hf_names().model_types) all.push_back(type);
  return either(all);
}

// Turns the names of models with a head into those without: BertForMaskedLM into BertModel.
void remove_head(ordered_json& architectures) {
  for (ordered_json& architecture : architectures) {
    std::string name = architecture;
    for (const char* head : {"ForMaskedLM", "ForCausalLM", "LMHeadModel"})
      if (name.ends_with(head)) name = name.substr(0, name.rfind(head)) + "Model";
    architecture = name;
  }
}

}  // namespace

std::string hf_config(const ModelShape& shape, const SpecialIds& ids, DType dtype) {
  ordered_json config;
  shape.family->write_config(shape, config);
  if (shape.head == HeadKind::representation) remove_head(config["architectures"]);
  config["initializer_range"] = 0.02;
  config["tie_word_embeddings"] = shape.tied;
  // Write explicit nulls: the defaults are ids of other vocabularies. A padding id would stop that row of the embedding
  // from learning.
  config["bos_token_id"] = id_or_null(ids.begin);
  config["eos_token_id"] = id_or_null(ids.end);
  config["pad_token_id"] = nullptr;
  config["use_cache"] = true;
  config["torch_dtype"] = torch_name(dtype);
  config["dtype"] = torch_name(dtype);
  return print_json(config, 2) + "\n";
}

ModelShape parse_hf_config(std::string_view text, const std::string& where) {
  json object = try_parse_json(text, where);
  if (!object.is_object())
    throw UserError({where, "", "a JSON object", "something else", "check whether this is the config.json of a model"});
  HfFields f(object, where);
  ModelShape s;
  s.family = family_of_type(f.text("model_type"));
  if (!s.family) f.refuse("model_type", known_types(), "other families are not supported in this version");
  s.family->read_config(f, s);
  f.must_be_absent("quantization_config", "quantized weights are not supported: use float32, bfloat16 or float16");
  if (s.head_size == 0 && s.hidden % s.heads != 0)
    f.refuse(std::string(s.family->hf_names().heads_key), fmt::format("a divisor of the width {}", s.hidden));
  if (f.has("megalith_dropout")) {
    HfFields ours = f.inside("megalith_dropout");
    s.dropout.embedding = ours.rate_or("embedding", 0);
    s.dropout.residual = ours.rate_or("residual", 0);
  }
  return s;
}

SpecialIds read_hf_special_ids(const std::filesystem::path& dir) {
  const std::filesystem::path path = dir / "config.json";
  json object = try_parse_json(read_file(path), path.string());
  auto id = [&](const char* key) -> std::optional<int64_t> {
    json value = object.is_object() ? object.value(key, json()) : json();
    if (value.is_array() && !value.empty()) value = value.front();
    if (!value.is_number_integer() || value < 0) return std::nullopt;
    return value.get<int64_t>();
  };
  return {id("bos_token_id"), id("eos_token_id")};
}

ModelShape read_hf_config(const std::filesystem::path& dir) {
  std::filesystem::path path = dir / "config.json";
  ModelShape shape = parse_hf_config(read_file(path), path.string());
  if (const auto form = read_sentence_form(dir)) {
    shape.head = HeadKind::representation;
    shape.pooling = form->pooling;
  }
  return shape;
}

}  // namespace megalith
