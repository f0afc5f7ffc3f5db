// Facts of blocks, parameter lists and Hugging Face configurations.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/weight_names.h"
#include "config/resolved.h"
#include "families/block_spec.h"
#include "families/facts.h"
#include "planner/input.h"
#include "planner/run_blocks.h"
#include "recording/dump.h"

namespace megalith::recording {
namespace {

// One `name=value` for every value that is not zero; floating-point numbers to the last bit.
class Line {
 public:
  Line& add(const char* name, int64_t value) {
    if (value != 0) text += fmt::format(" {}={}", name, value);
    return *this;
  }
  Line& add(const char* name, double value) {
    if (value != 0) text += fmt::format(" {}={:a}", name, value);
    return *this;
  }
  std::string text;
};

std::string facts_line(const BlockFacts& f) {
  Line line;
  line.add("kind", static_cast<int64_t>(f.kind)).add("tied_to", int64_t{f.tied_to} + 1);
  line.add("parameters", f.parameters).add("optimizer_bytes", f.optimizer_bytes);
  line.add("expert_parameters", f.expert_parameters).add("expert_optimizer_bytes", f.expert_optimizer_bytes);
  line.add("optimizer_disk_bytes", f.optimizer_disk_bytes).add("values_disk_bytes", f.values_disk_bytes);
  line.add("optimizer_streams", int64_t{f.optimizer_streams});
  line.add("forward_flop", f.forward.flop).add("backward_flop", f.backward.flop);
  line.add("forward_touched_bytes", f.forward.touched_bytes).add("backward_touched_bytes", f.backward.touched_bytes);
  line.add("saved_bytes", f.saved_bytes).add("attention_saved_bytes", f.attention_saved_bytes);
  line.add("packs_input", int64_t{f.packs_input}).add("output_bytes", f.output_bytes);
  line.add("workspace_bytes", f.workspace_bytes).add("validation_bytes", f.validation_bytes);
  line.add("aside_bytes", f.sparse_gradient_bytes).add("weight_flop", f.weight_flop).add("deferred_bytes", f.deferred_bytes);
  line.add("deferring_workspace_bytes", f.deferring_workspace_bytes);
  line.add("weigh_workspace_bytes", f.weight_gradient_workspace_bytes);
  line.add("attention_flop", f.attention.flop).add("attention_touched", f.attention.touched_bytes);
  line.add("output_flop", f.output.flop).add("output_touched", f.output.touched_bytes);
  const auto exchange = [&](const char* calls, const char* bytes, const ExchangeFacts& it) {
    line.add(calls, it.calls).add(bytes, it.bytes);
  };
  exchange("tensor_forward_calls", "tensor_forward_bytes", f.forward.exchanges[Axis::tensor]);
  exchange("tensor_backward_calls", "tensor_backward_bytes", f.backward.exchanges[Axis::tensor]);
  exchange("context_forward_calls", "context_forward_bytes", f.forward.exchanges[Axis::context]);
  exchange("context_backward_calls", "context_backward_bytes", f.backward.exchanges[Axis::context]);
  exchange("expert_forward_calls", "expert_forward_bytes", f.forward.exchanges[Axis::expert]);
  exchange("expert_backward_calls", "expert_backward_bytes", f.backward.exchanges[Axis::expert]);
  line.add("compute_copy_bytes", f.compute_copy_bytes).add("save_workspace_bytes", f.save_workspace_bytes);
  line.add("stream_bytes", f.stream_bytes).add("fetch_bytes", f.load_bytes);
  line.add("streams_amply", int64_t{f.streams_amply}).add("call_bytes", f.call_bytes);
  line.add("parking_bytes", f.input_offload_bytes).add("backward_uses_parameters", int64_t{f.backward_uses_parameters});
  return line.text;
}

// Neighbours with equal facts share a line.
void print_facts(const std::string& title, const std::vector<BlockFacts>& blocks) {
  fmt::print("== {}\n", title);
  for (size_t first = 0; first < blocks.size();) {
    size_t end = first + 1;
    while (end < blocks.size() && facts_line(blocks[end]) == facts_line(blocks[first])) end++;
    fmt::print("{}{}:{}\n", blocks[first].name, end - first > 1 ? " to " + blocks[end - 1].name : "",
               facts_line(blocks[first]));
    first = end;
  }
}

void print_facts_of(const NamedModel& model, const std::string& more) {
  std::string title = fmt::format("{} | {}", model.name, more);
  std::replace(title.begin(), title.end(), '\n', ';');
  try {
    const Config config = read_run(model, more);
    print_facts(title, facts_for(input_of(config), config.train.micro_batch));
  } catch (const UserError&) {
    fmt::print("== {}\nrefused\n", title);
  }
}

std::vector<std::string> layouts(bool has_experts) {
  std::vector<std::string> all;
  for (int expert = 1; expert <= (has_experts ? 2 : 1); expert++)
    for (int tensor : {1, 2})
      for (const char* context : {"", ", context: 2", ", context: 2, context_form: ulysses"})
        all.push_back(fmt::format("parallel: {{data: 2, tensor: {}, expert: {}{}}}\n", tensor, expert, context));
  return all;
}

const char* const kFormats[] = {"train: {precision: fp32}\n", "train: {precision: bf16}\n", "train: {precision: fp16}\n",
                                "memory: {activations: bf16}\n", "memory: {activations: int8}\n"};
const char* const kDropping[] = {"", "token_dropping: {from: 16, to: 64, over: 100 steps}\n",
                                 "token_dropping: {from: 16, to: 48, over: 100 steps}\n"};
const char* const kOptimizers[] = {"adamw", "adamw, optimizer_state: bf16", "adamw, optimizer_state: int8", "lion",
                                   "lion, optimizer_state: bf16", "sgd", "sgd, momentum: 0", "adafactor"};

// Facts of every rank of a small split: plans use the first rank's only, engines their own.
void print_rank_facts(const NamedModel& model) {
  const ModelShape shape = read_run(model).model.shape;
  for (int32_t tensor : {1, 2})
    for (int32_t context : {1, 2})
      for (int32_t rank = 0; rank < tensor * context; rank++)
        for (int64_t length : {63, 64}) {
          const Mesh mesh({.context = context, .tensor = tensor}, rank);
          print_facts(fmt::format("{} | tensor {}, context {}, rank {}, {} tokens", model.name, tensor, context, rank, length),
                      block_facts(shape, {.sequences = 2, .length = length, .micros = 4}, Precision::fp32, Packing::fp32,
                                  mesh));
        }
}

void print_blocks(const ModelShape& shape, const Mesh& mesh) {
  int64_t number = 0;  // number of the parameter in the model, the key of its random numbers
  for (const BlockSpec& block : list_blocks(shape, mesh)) {
    fmt::print("{}: kind {}, layer {}, {} elements\n", block.name, static_cast<int>(block.kind), block.layer,
               block.flat_size);
    for (const Segment& part : block.segments)
      fmt::print("  part {} to {}, spread {}, expert {}\n", part.range.begin, part.range.end, part.spread, part.expert);
    for (const ParameterSpec& p : block.parameters) {
      fmt::print("  {} {} {} of {} at {}, std {:a}, initial {:a}, sign {:a}, flags {:d}{:d}{:d}{:d}{:d}", number++, p.name,
                 p.shape, p.whole_shape, p.offset, p.initial_std, p.initial, p.sign_rate, p.decays, p.joins_previous,
                 p.of_expert, p.begins_expert, p.wide);
      if (p.is_cut()) fmt::print(", cut {}", p.cut.dimension);
      for (const ParameterCut::Range& range : p.cut.ranges) fmt::print(" {}:{}", range.begin, range.end);
      fmt::print("\n");
    }
  }
}

void print_names(const ModelShape& shape) {
  for (const BlockSpec& block : list_blocks(shape))
    for (const ParameterSpec& p : block.parameters)
      fmt::print("{}: {} | tied {}\n", p.name, fmt::join(other_spellings(p.name), ", "), tied_to(p.name));
}

void print_hugging_face(const NamedModel& model) {
  const ModelShape shape = read_run(model).model.shape;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const std::string text = hf_config(shape, dtype == DType::f32 ? SpecialIds{} : SpecialIds{.begin = 1, .end = 2}, dtype);
    fmt::print("== {}\n{}\n", model.name, text);
    try {
      const ModelShape back = parse_hf_config(text, model.name);
      fmt::print("read back: {}\n", back == shape ? "equal" : hf_config(back, {}, dtype));
    } catch (const UserError&) {
      fmt::print("read back: refused\n");
    }
  }
}

}  // namespace

void dump_facts() {
  for (const NamedModel& model : all_models()) {
    for (const std::string& layout : layouts(model.yaml.find("experts") != std::string::npos))
      for (const char* format : kFormats)
        for (const char* dropping : kDropping) print_facts_of(model, layout + format + dropping);
    for (const char* optimizer : kOptimizers)
      for (const char* precision : {"fp32", "bf16"})
        print_facts_of(model, fmt::format("train: {{optimizer: {}, precision: {}}}\nparallel: {{data: 1}}\n", optimizer,
                                          precision));
  }
  for (const NamedModel& model : small_models()) {
    print_rank_facts(model);
    const Config config = read_run(model, "parallel: {data: 1}\n");
    print_facts(model.name + " | ample staging", facts_for(input_of(config), config.train.micro_batch, Staging::ample));
  }
}

void dump_parameters() {
  for (const NamedModel& model : preset_models()) {
    const Config config = read_run(model);
    fmt::print("== {}: {} parameters\n", model.name, parameter_count(config.model.shape));
    print_blocks(config.model.shape, {});
  }
  for (const NamedModel& model : small_models()) {
    const ModelShape shape = read_run(model).model.shape;
    fmt::print("== {}: {} parameters\n", model.name, parameter_count(shape));
    for (int32_t tensor : {1, 2, 4})
      for (int32_t expert : {1, 2})
        for (int32_t rank = 0; rank < tensor * expert && (expert == 1 || shape.experts.any()); rank++) {
          fmt::print("== {} | tensor {}, expert {}, rank {}\n", model.name, tensor, expert, rank);
          print_blocks(shape, Mesh({.data = expert, .tensor = tensor, .expert = expert}, rank));
        }
  }
}

void dump_hugging_face() {
  for (const NamedModel& model : all_models()) {
    print_hugging_face(model);
    fmt::print("{}\n", to_yaml(read_run(model)));
  }
  for (const NamedModel& model : small_models()) print_names(read_run(model).model.shape);
}

}  // namespace megalith::recording
