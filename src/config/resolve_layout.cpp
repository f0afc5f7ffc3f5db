#include "config/resolve_layout.h"

#include <algorithm>

#include "base/error.h"
#include "families/layout_check.h"

namespace megalith {
namespace {

std::string possible(int ranks) {
  constexpr size_t kShown = 5;
  std::string text;
  const std::vector<Layout> all = layouts_of(ranks);
  for (size_t i = 0; i < std::min(kShown, all.size()); i++) text += (i == 0 ? "" : "; ") + show(all[i]);
  if (all.size() > kShown) text += fmt::format("; and {} more", all.size() - kShown);
  return text;
}

[[noreturn]] void refuse(const std::string& key, const std::string& expected, const std::string& got,
                         const std::string& hint) {
  throw UserError({"", key, expected, got, hint});
}

}  // namespace

Layout layout_of(const Config& config) {
  const ParallelSettings& p = config.parallel;
  const auto number = [](int64_t n) { return static_cast<int32_t>(n); };
  return {.data = number(std::max<int64_t>(1, p.data)),
          .pipeline = number(p.pipeline),
          .context = number(p.context),
          .tensor = number(p.tensor),
          .expert = number(p.expert),
          .zero = number(p.zero),
          .context_form = p.context_form,
          .order = p.schedule,
          .chunks = p.schedule == PipelineOrder::interleaved ? number(p.interleave) : 1};
}

Layout resolve_layout(const Config& config, int ranks) {
  const ParallelSettings& p = config.parallel;
  Layout layout = layout_of(config);
  const int64_t others = p.tensor * p.pipeline * p.context;
  const bool open = p.data == 0 && ranks % others != 0;  // true if no number of copies gives this number of ranks
  if (p.data == 0 && !open) layout.data = static_cast<int32_t>(ranks / others);
  if (layout.ranks() != ranks || open)
    refuse("parallel", ranks == 1 ? "a layout of 1 rank" : fmt::format("a layout of {} ranks: {}", ranks, possible(ranks)),
           open ? fmt::format("{} per replica of the model", show(layout))
                : fmt::format("{} ({} ranks)", show(layout), layout.ranks()),
           ranks == 1 ? fmt::format("start it with --ranks {}", layout.ranks()) : "");
  if (layout.data % layout.expert != 0)
    refuse("parallel.expert", fmt::format("a divisor of parallel.data ({})", layout.data), std::to_string(layout.expert),
           "the experts are split over the ranks of the data axis");
  const int64_t batch = config.step_sequences();
  if (batch % layout.data != 0)
    refuse("train.batch", fmt::format("a multiple of parallel.data ({})", layout.data), std::to_string(batch),
           "every rank of the data axis takes the same number of sequences");
  if (config.train.micro_batch > 0 && batch / layout.data % config.train.micro_batch != 0)
    refuse("train.micro_batch", fmt::format("a divisor of the sequences per rank ({})", batch / layout.data),
           std::to_string(config.train.micro_batch), "");
  if (layout.order == PipelineOrder::interleaved && layout.pipeline > 1 && layout.chunks < 2)
    refuse("parallel.interleave", "at least 2, because parallel.schedule is interleaved", std::to_string(p.interleave), "");
  if (config.memory.device && config.memory.device_bandwidth == 0)
    refuse("memory.device", "memory.simulated_device.bandwidth next to it", show(*config.memory.device),
           "GPUs are not supported in this version; memory.simulated_device.bandwidth=8GB simulates a device");
  if (config.memory.device && ranks > 1)
    refuse("memory.device", "a run of one rank", fmt::format("{} with {} ranks", show(*config.memory.device), ranks),
           "devices are not supported with several ranks");
  const bool divided = layout.divides_parameters();
  if (const OptimizerRow& optimizer = row_of(config.train.optimizer); !optimizer.elementwise && divided)
    refuse("train.optimizer",
           optimizer_words([](const OptimizerRow& row) { return row.elementwise; }) +
               " with parallel.zero, parallel.tensor or parallel.expert",
           std::string(optimizer.word), "it needs whole parameters, but these settings split them over ranks");
  if (config.train.optimizer_state == Packing::int8 && divided)
    refuse("train.optimizer_state", "fp32 or bf16 with parallel.zero, parallel.tensor or parallel.expert", "int8",
           "int8 is not supported there: ranks would split blocks that have one scale");
  return layout;
}

void check_model_layout(const ModelShape& shape, const Layout& layout) {
  check_layout(shape, layout);
  const int64_t blocks = shape.layers + 2;  // layers, embedding and head
  if (layout.pipeline > 1 && int64_t{layout.pipeline} * layout.chunks > blocks)
    refuse("parallel.pipeline",
           fmt::format("at most {} stages, because the model has {} blocks", blocks / layout.chunks, blocks),
           std::to_string(layout.pipeline), "the blocks (embedding, layers and head) are distributed over the stages");
}

}  // namespace megalith
