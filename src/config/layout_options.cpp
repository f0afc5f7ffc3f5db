#include "config/layout_options.h"

#include <algorithm>
#include <array>

#include "config/option_types.h"

namespace megalith {
namespace {

#define FIELD(member) [](auto& config) -> auto& { return config.member; }

// A size, or "none".
template <class Get, class Set>
Entry size_or_none(std::string_view name, Get get, Set put, std::string_view about) {
  Entry e = entry(name, OptionType::size, from(1), "none", about);
  e.words = {"none"};
  e.set = [=](Config& c, const Yaml& value) {
    if (value.kind != Yaml::Kind::scalar) return false;
    const std::optional<Bytes> size = parse_bytes(value.text);
    if (value.text != "none" && (!size || size->value < 1)) return false;
    put(c, size);
    return true;
  };
  e.get = [=](const Config& c) {
    const std::optional<Bytes> size = get(c);
    return size ? write_bytes(*size) : "none";
  };
  return e;
}

Entry ram() {
  Entry e =
      entry("memory.ram", OptionType::size, from(1), "auto",
            "Memory this host may use for the run, all ranks together; auto takes what the control group or "
            "the machine has, less a margin. The run fits into it or refuses to start.");
  e.words = {"auto"};
  e.set = [](Config& c, const Yaml& value) {
    if (value.kind != Yaml::Kind::scalar) return false;
    std::optional<Bytes> size = parse_bytes(value.text);
    if (value.text != "auto" && (!size || size->value < 1)) return false;
    c.memory.ram = size;
    return true;
  };
  e.get = [](const Config& c) { return c.memory.ram ? write_bytes(*c.memory.ram) : "auto"; };
  return e;
}

// A word, or the length of a chain: `4` and `every 4` mean the same.
Entry recompute() {
  Entry e = entry("memory.recompute", OptionType::count, between(1, kLayers), "auto",
                  "Which activations are computed again in the backward pass instead of being kept: none, those of the "
                  "layers' feed-forward halves (selective), those of all layers (full), those of all layers with only "
                  "every K-th layer's input kept (K, or every K); auto recomputes as little as memory allows.");
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
               "Copies of the model, each with its share of the batch.")
          .in("ranks")
          .free(),
      count("parallel.tensor", FIELD(parallel.tensor), between(1, kWidth), "1", "Ranks that share each matrix.")
          .in("ranks")
          .free(),
      count("parallel.pipeline", FIELD(parallel.pipeline), between(1, kWidth), "1", "Stages of the pipeline.")
          .in("stages")
          .free(),
      count("parallel.context", FIELD(parallel.context), between(1, kWidth), "1", "Ranks that share each sequence.")
          .in("ranks")
          .free(),
      choice("parallel.context_form", FIELD(parallel.context_form), "ring",
             "How they share attention: keys and values go round, or each rank takes some heads of whole sequences "
             "(their number must be a multiple of parallel.context).")
          .free()
          .when("parallel.context is above 1", cut_sequences),
      count("parallel.expert", FIELD(parallel.expert), between(1, kWidth), "1",
            "Ranks of the data axis that the experts are spread over; to other layers they are copies.")
          .in("ranks")
          .free(),
      count("parallel.zero", FIELD(parallel.zero), between(0, 3), "0",
            "ZeRO stage: 1 shards moments, 2 gradients too, 3 parameters too.")
          .free(),
      choice("parallel.schedule", FIELD(parallel.schedule), "1f1b", "Order of micro-batches in a pipeline.")
          .free()
          .when("parallel.pipeline is above 1", pipelined),
      count("parallel.interleave", FIELD(parallel.interleave), between(1, kLayers), "1", "Model parts a stage holds.")
          .free()
          .when("parallel.pipeline is above 1", pipelined),
  };
}

}  // namespace

std::vector<Option> layout_options() {
  std::vector<Option> options = parallel_options();
  const std::vector<Option> others{
      ram().free(),
      text("memory.spill", FIELD(memory.spill), "none: nothing is spilled",
           "Directory on a fast disk for what does not fit into memory: optimizer state first, then parameters and "
           "gradients. Scratch, this run's alone; nothing is left there.")
          .in("directory")
          .free(),
      count_or("auto", 0, "memory.window", FIELD(memory.window), between(1, kLayers), "auto",
               "How many turns ahead a block that lives on disk is brought in: one computes, the others come. auto is the "
               "smallest for which the predicted step is as short as any.")
          .in("blocks")
          .free()
          .when("memory.spill or memory.device is given",
                [](const Config& c) { return !c.memory.spill.empty() || c.memory.device; }),
      size_or_none(
          "memory.device", [](const Config& c) { return c.memory.device; },
          [](Config& c, std::optional<Bytes> size) { c.memory.device = size; },
          "Memory of the device on which blocks are computed. Parameters, gradients and activations are there while "
          "they are used; the state is in this host's memory, or on disk with memory.spill, where updates are made. "
          "There is no GPU in this version: with memory.simulated_device.bandwidth it is a simulated device, whose "
          "memory is this host's, besides memory.ram.")
          .free(),
      size_or_none(
          "memory.simulated_device.bandwidth",
          [](const Config& c) {
            return c.memory.device_bandwidth > 0 ? std::optional(Bytes(c.memory.device_bandwidth)) : std::nullopt;
          },
          [](Config& c, std::optional<Bytes> size) { c.memory.device_bandwidth = size ? size->value : 0; },
          "How fast a simulated device is reached, each way: copies take as long as they would take there. Blocks are "
          "computed by this machine; no number differs from a run without a device.")
          .in("bytes a second")
          .free()
          .when("memory.device is given", [](const Config& c) { return c.memory.device.has_value(); }),
      recompute().free(),
      choice("memory.activations", FIELD(train.activations), "fp32",
             "How activations are kept from the forward to the backward pass: 4, 2 or 1 bytes a number (int8 with a scale "
             "for every 128). Losses of a step stay exact, gradients take the rounding.")
          .when("train.precision is fp32 (16-bit activations are kept as they are) and memory.recompute is not selective",
                [](const Config& c) {
                  return c.train.precision == Precision::fp32 && c.memory.recompute != Recompute::selective;
                }),
      count_or("never", -1, "checkpoint.every", FIELD(checkpoint.every), between(0, 9e18), "200",
               "Steps between checkpoints; 0 saves only at the end.")
          .in("steps")
          .free(),
      count("checkpoint.keep", FIELD(checkpoint.keep), between(1, kMany), "2", "Checkpoints kept, the newest ones.").free(),
  };
  options.insert(options.end(), others.begin(), others.end());
  return options;
}

#undef FIELD

}  // namespace megalith
