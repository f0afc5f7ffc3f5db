#include "config/layout_options.h"

#include <algorithm>
#include <array>

#include "config/option_types.h"

namespace megalith {
namespace {

#define FIELD(member) [](auto& config) -> auto& { return config.member; }

// A size, or a word for "no size".
template <class Get, class Set>
Entry size_or(std::string_view word, std::string_view name, Get get, Set put, std::string_view about) {
  Entry e = entry(name, OptionType::size, from(kNeedsUnit), word, about);
  e.words = {word};
  e.set = [=](Config& c, const Yaml& value) {
    const std::optional<Bytes> size = read_size(value);
    if (!size && (value.kind != Yaml::Kind::scalar || value.text != word)) return false;
    put(c, size);
    return true;
  };
  e.get = [=](const Config& c) {
    const std::optional<Bytes> size = get(c);
    return size ? write_bytes(*size) : std::string(word);
  };
  return e;
}

// A word, or the length of a chain: `4` and `every 4` mean the same.
Entry recompute() {
  Entry e = entry("memory.recompute", OptionType::count, between(1, kLayers), "auto",
                  "Which activations the backward pass recomputes, so that they need not be kept. none: no activations. "
                  "selective: those of the feed-forward layers. full: those of all layers. K or every K: those of all "
                  "layers, and only every K-th layer keeps its input. auto: as few as memory.ram allows.");
  e.words = {"auto", "none", "selective", "full"};
  e.unit = "layers";
  e.set = [range = e.range](Config& c, const Yaml& value) {
    if (value.kind != Yaml::Kind::scalar) return false;
    for (Recompute word : {Recompute::automatic, Recompute::none, Recompute::selective, Recompute::full})
      if (value.text == name_of(word)) {
        c.memory.recompute = word;
        c.memory.recompute_every = 0;
        return true;
      }
    Yaml number = value;
    if (number.text.starts_with("every ")) number.text.erase(0, 6);
    const auto every = read_count(number, range);
    if (!every) return false;
    c.memory.recompute = Recompute::every;
    c.memory.recompute_every = *every;
    return true;
  };
  e.get = [](const Config& c) {
    return c.memory.recompute == Recompute::every ? fmt::format("{}", c.memory.recompute_every)
                                                  : std::string(name_of(c.memory.recompute));
  };
  return e;
}

std::vector<Option> parallel_options() {
  auto pipelined = [](const Config& c) { return c.parallel.pipeline > 1; };
  auto cut_sequences = [](const Config& c) { return c.parallel.context > 1; };
  return {
      count_or("auto", 0, "parallel.data", FIELD(parallel.data), between(1, kWidth), "auto",
               "Number of replicas of the model. Each computes an equal part of the batch. auto: the number of ranks "
               "divided by the other axes.")
          .in("ranks")
          .free(),
      count("parallel.tensor", FIELD(parallel.tensor), between(1, kWidth), "1",
            "Number of ranks over which each matrix is split.")
          .in("ranks")
          .free(),
      count("parallel.pipeline", FIELD(parallel.pipeline), between(1, kWidth), "1",
            "Number of pipeline stages over which the layers are split.")
          .in("stages")
          .free(),
      count("parallel.context", FIELD(parallel.context), between(1, kWidth), "1",
            "Number of ranks over which each sequence is split.")
          .in("ranks")
          .free(),
      choice("parallel.context_form", FIELD(parallel.context_form), "ring",
             "How the ranks of a sequence compute attention. ring: keys and values pass from rank to rank. ulysses: each "
             "rank computes some heads of whole sequences. The number of heads must then be a multiple of "
             "parallel.context.")
          .free()
          .when("parallel.context is above 1", cut_sequences),
      count("parallel.expert", FIELD(parallel.expert), between(1, kWidth), "1",
            "Number of ranks of the data axis over which the experts are split. For other layers these ranks are replicas.")
          .in("ranks")
          .free(),
      count("parallel.zero", FIELD(parallel.zero), between(0, 3), "0",
            "ZeRO stage: what is split over the data ranks. 1: the optimizer state. 2: also the gradients. 3: also the "
            "parameters. 0: nothing.")
          .free(),
      choice("parallel.schedule", FIELD(parallel.schedule), "1f1b", "Order of the micro-batches in the pipeline.")
          .free()
          .when("parallel.pipeline is above 1", pipelined),
      count("parallel.interleave", FIELD(parallel.interleave), between(1, kLayers), "1",
            "Number of model parts per pipeline stage, if parallel.schedule is interleaved.")
          .free()
          .when("parallel.pipeline is above 1", pipelined),
  };
}

}  // namespace

std::vector<Option> layout_options() {
  std::vector<Option> options = parallel_options();
  const std::vector<Option> others{
      size_or(
          "auto", "memory.ram", [](const Config& c) { return c.memory.ram; },
          [](Config& c, std::optional<Bytes> size) { c.memory.ram = size; },
          "Memory that all ranks of this host may use together. auto: the memory of the control group or the machine, "
          "minus a margin. A run that does not fit does not start.")
          .free(),
      text("memory.spill", FIELD(memory.spill), "none: no state is kept on disk",
           "Directory on a fast disk for state that does not fit into memory: first optimizer state, then parameters and "
           "gradients. The files are temporary. The run removes them at the end.")
          .in("directory")
          .free(),
      count_or("auto", 0, "memory.window", FIELD(memory.window), between(1, kLayers), "auto",
               "Number of blocks that are loaded ahead of computation, so that loading overlaps with it. auto: the smallest "
               "window with the shortest predicted step.")
          .in("blocks")
          .free()
          .when("memory.spill or memory.device is given",
                [](const Config& c) { return !c.memory.spill.empty() || c.memory.device; }),
      size_or(
          "none", "memory.device", [](const Config& c) { return c.memory.device; },
          [](Config& c, std::optional<Bytes> size) { c.memory.device = size; },
          "Memory of the device that computes the blocks. The device has parameters, gradients and activations only while "
          "they are used. The state is in host memory (or on disk with memory.spill) and is updated there. This version "
          "does not support GPUs. memory.simulated_device.bandwidth simulates a device in host memory, in addition to "
          "memory.ram.")
          .free(),
      size_or(
          "none", "memory.simulated_device.bandwidth",
          [](const Config& c) {
            return c.memory.device_bandwidth > 0 ? std::optional(Bytes(c.memory.device_bandwidth)) : std::nullopt;
          },
          [](Config& c, std::optional<Bytes> size) { c.memory.device_bandwidth = size ? size->value : 0; },
          "Speed of copies to and from the simulated device, in each direction. Copies take as long as on a device with "
          "this speed. The host computes the blocks. All results are the same as without a device.")
          .in("bytes per second")
          .free()
          .when("memory.device is given", [](const Config& c) { return c.memory.device.has_value(); }),
      recompute().free(),
      choice("memory.activations", FIELD(train.activations), "fp32",
             "Format of the activations between forward and backward pass: 4, 2 or 1 bytes per number (int8 with one "
             "scale per 128 numbers). Forward passes stay exact. Gradients contain the rounding error.")
          .when("train.precision is fp32 (16-bit activations are kept as they are) and memory.recompute is not selective",
                [](const Config& c) {
                  return c.train.precision == Precision::fp32 && c.memory.recompute != Recompute::selective;
                }),
      count_or("never", -1, "checkpoint.every", FIELD(checkpoint.every), between(0, 9e18), "200",
               "Number of steps between checkpoints. 0: only at the end. never: no checkpoints.")
          .in("steps")
          .free(),
      count("checkpoint.keep", FIELD(checkpoint.keep), between(1, kMany), "2",
            "Number of checkpoints to keep. Older checkpoints are removed.").free(),
  };
  options.insert(options.end(), others.begin(), others.end());
  return options;
}

#undef FIELD

}  // namespace megalith
