#include "tools/upcycle.h"

#include <charconv>

#include "base/error.h"
#include "base/log.h"
#include "base/normals.h"
#include "base/philox.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/model_tensors.h"
#include "checkpoint/reader.h"
#include "checkpoint/store.h"
#include "checkpoint/writer.h"
#include "families/family.h"
#include "tools/export_model.h"

namespace megalith {
namespace {

constexpr float kRouterStd = 0.02f;  // small, so that tokens are spread over all experts at first

ModelShape with_experts(ModelShape shape, const Upcycling& wanted, const std::string& where) {
  auto require = [&](bool holds, const char* key, const std::string& expected, const std::string& got) {
    if (!holds) throw UserError({where, key, expected, got, ""});
  };
  require(shape.family->uses.experts && !shape.output_bias, "--upcycle",
          "a Llama-like model without a bias on the attention output", std::string(shape.family->name));
  require(!shape.experts.any(), "--upcycle", "a dense model", fmt::format("one with {} experts", shape.experts.count));
  require(wanted.experts >= 1, "--upcycle", "at least 1 expert", fmt::format("{}", wanted.experts));
  require(wanted.top_k >= 1 && wanted.top_k <= wanted.experts, "--top-k",
          fmt::format("a number from 1 to --upcycle ({})", wanted.experts), fmt::format("{}", wanted.top_k));
  shape.experts.count = wanted.experts;
  shape.experts.top_k = wanted.top_k;
  shape.experts.ffn = shape.ffn;
  shape.mistral = false;
  return shape;
}

// Returns the name of the dense tensor that an expert's tensor is copied from. Other names are returned unchanged.
std::string dense_name(const std::string& name) {
  for (const char* part : {"block_sparse_moe.experts.", "mlp.experts."}) {
    const size_t at = name.find(part);
    if (at == std::string::npos) continue;
    const std::string of = name.substr(name.find('.', at + std::string(part).size()) + 1);
    const std::string dense = of == "w1.weight" ? "gate_proj.weight" : of == "w3.weight" ? "up_proj.weight"
                              : of == "w2.weight" ? "down_proj.weight" : of;
    return name.substr(0, at) + "mlp." + dense;
  }
  return name;
}

bool is_router(const std::string& name) {
  return name.ends_with("block_sparse_moe.gate.weight") || name.ends_with("mlp.gate.weight");
}

int64_t layer_of(const std::string& name) {
  const std::string before = "model.layers.";
  int64_t layer = 0;
  std::from_chars(name.data() + before.size(), name.data() + name.size(), layer);
  return layer;
}

}  // namespace

void upcycle_model(const std::filesystem::path& from, const std::filesystem::path& out, std::optional<DType> wanted,
                   const Upcycling& upcycling) {
  check_new_folder(out);
  const std::filesystem::path folder = find_model_folder(from, [](const std::string& m) { log::warn("{}", m); });
  const ModelShape dense = read_hf_config(folder), sparse = with_experts(dense, upcycling, folder.string());
  WeightSource source = WeightSource::open_model(folder);
  const DType dtype = wanted.value_or(stored_type(source));
  source.check_matches(tensors_of(dense, dtype), head_of(dense, HeadUse::required));
  write_model(folder, sparse, dtype, out, [&](const std::string& name, int64_t begin, std::span<float> values) {
    if (!is_router(name)) return source.read_f32(dense_name(name), begin, values);
    const Philox random(1, RandomUse::initial_weights, static_cast<uint64_t>(layer_of(name)));
    fill_normals(random, static_cast<uint64_t>(begin), values);
    for (float& value : values) value *= kRouterStd;
  });
}

}  // namespace megalith
