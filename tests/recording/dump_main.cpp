// recording_dump SECTION prints one section; without a section it lists their names.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string_view>
#include <utility>

#include "config/parse.h"
#include "config/presets.h"
#include "recording/dump.h"

namespace megalith::recording {

std::vector<NamedModel> preset_models() {
  std::vector<NamedModel> models;
  for (const Preset& preset : presets())
    models.push_back({std::string(preset.name), fmt::format("{{preset: {}}}", preset.name),
                      preset.name.starts_with("bert") ? "masked" : "causal"});
  return models;
}

std::vector<NamedModel> small_models() {
  const auto gpt2 = [](std::string_view more) {
    return fmt::format("{{arch: gpt2, layers: 4, hidden: 48, heads: 4, context: 64, vocab: 321{}}}", more);
  };
  const auto llama = [](std::string_view more) {
    return fmt::format("{{arch: llama, layers: 4, hidden: 64, heads: 8, kv_heads: 4, ffn: 96, context: 64, vocab: 321{}}}",
                       more);
  };
  const auto bert = [](std::string_view more) {
    return fmt::format("{{arch: bert, layers: 4, hidden: 48, heads: 4, ffn: 96, context: 64, vocab: 321{}}}", more);
  };
  const std::string dropout = ", dropout: {embedding: 0.1, residual: 0.1, attention: 0.1}";
  std::vector<NamedModel> models{
      {"gpt2", gpt2("")},
      {"gpt2 untied", gpt2(", tied: false")},
      {"gpt2 dropout", gpt2(dropout)},
      {"llama", llama("")},
      {"llama tied", llama(", tied: true")},
      {"llama dropout", llama(dropout)},
      {"llama biases", llama(", qkv_bias: true, output_bias: true")},
      {"llama wide heads", llama(", head_dim: 16, qkv_bias: true")},
      {"bert", bert(""), "masked"},
      {"bert untied", bert(", tied: false"), "masked"},
      {"shared expert", llama(", experts: {count: 4, every: 2, shared: 32, ffn: 48}")},
      {"shared layers", llama(", experts: {count: 4, share_layers: true}")},
      {"crowded experts", llama(", experts: {count: 4, router: switch, capacity: 1.25, group: 8, jitter: 0.01}")},
      {"wide gpt2", "{arch: gpt2, layers: 4, hidden: 512, heads: 4, context: 64, vocab: 321}"},
      {"wide experts", "{arch: llama, layers: 4, hidden: 512, heads: 8, ffn: 512, context: 64, vocab: 321, experts: {count: 8}}"},
      {"tied experts", llama(", tied: true, experts: {count: 4, capacity: 1.5}")},
  };
  for (const char* router : {"softmax", "noisy", "switch", "gshard", "sigmoid"})
    models.push_back({fmt::format("{} experts", router), llama(fmt::format(", experts: {{count: 4, router: {}}}", router))});
  models.push_back({"expert_choice experts", llama(", experts: {count: 4, router: expert_choice, across: 2, capacity: 1}")});
  return models;
}

std::vector<NamedModel> all_models() {
  std::vector<NamedModel> models = preset_models();
  for (NamedModel& model : small_models()) models.push_back(std::move(model));
  return models;
}

Config read_run(const NamedModel& model, const std::string& more) {
  const std::string yaml = fmt::format(
      "model: {}\nobjective: {}\ndata: {{train: [text.txt], tokenizer: {{train: bpe, vocab: 321}}, sequence: 64}}\n{}",
      model.yaml, model.objective, more);
  return parse_config(yaml, model.name, "run", std::vector<std::string>{"train.batch=8", "train.micro_batch=2",
                                                                        "train.threads=2"});
}

}  // namespace megalith::recording

int main(int count, char** words) {
  using namespace megalith::recording;
  constexpr std::pair<std::string_view, void (*)()> kSections[] = {
      {"facts", dump_facts},           {"parameters", dump_parameters}, {"hugging_face", dump_hugging_face},
      {"strategies", dump_strategies}, {"schedules", dump_schedules},   {"costs", dump_costs},
      {"memory", dump_memory},         {"checks", dump_checks},
      {"drawings", dump_drawings},
  };
  try {
    for (const auto& [name, dump] : kSections) {
      if (count < 2) fmt::print("{}\n", name);
      if (count == 2 && name == words[1]) return dump(), 0;
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return count < 2 ? 0 : 2;
}
