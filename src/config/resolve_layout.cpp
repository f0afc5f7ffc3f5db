#include "config/resolve_layout.h"

#include <algorithm>

#include "base/error.h"
#include "base/mistakes.h"
#include "families/layout_check.h"
#include "families/shape_check.h"

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

// Returns the layout with parallel.data computed, if its axes give `ranks` ranks. Otherwise throws UserError.
Layout fitting_layout(const ParallelSettings& p, Layout layout, int ranks, std::string_view from) {
  const int64_t others = p.tensor * p.pipeline * p.context;
  const bool open = p.data == 0 && ranks % others != 0;  // true if no number of copies gives this number of ranks
  if (p.data == 0 && !open) layout.data = static_cast<int32_t>(ranks / others);
  if (layout.ranks() == ranks && !open) return layout;
  const std::string got = open ? fmt::format("{} per replica of the model", show(layout))
                               : fmt::format("{} ({} ranks)", show(layout), layout.ranks());
  if (ranks == 1) refuse("parallel", "a layout of 1 rank", got, fmt::format("start it with --ranks {}", layout.ranks()));
  refuse("parallel", fmt::format("a layout of {} ranks (from {}): {}", ranks, from, possible(ranks)), got,
         fmt::format("use one of these layouts, or start {}{} ranks", open ? "a multiple of " : "", layout.ranks()));
}

void check_batch(const Config& config, const Layout& layout, std::string_view from) {
  const int64_t batch = config.step_sequences(), data = layout.data, share = batch / data;
  const std::string source = config.parallel.data == 0 ? fmt::format("{}, from {}", data, from) : fmt::to_string(data);
  if (batch % data != 0)
    refuse("train.batch", fmt::format("a multiple of parallel.data ({})", source), std::to_string(batch),
           fmt::format("every rank of the data axis takes the same number of sequences: use {}{}",
                       share > 0 ? fmt::format("{} or ", share * data) : "", (share + 1) * data));
  if (config.train.micro_batch > 0 && share % config.train.micro_batch != 0)
    refuse("train.micro_batch", fmt::format("a divisor of the sequences per rank ({})", share),
           std::to_string(config.train.micro_batch), nearby_divisors(share, config.train.micro_batch));
}

void check_axes(const Config& config, const Layout& layout) {
  if (layout.data % layout.expert != 0)
    refuse("parallel.expert", fmt::format("a divisor of parallel.data ({})", layout.data), std::to_string(layout.expert),
           "the experts are split over the ranks of the data axis");
  if (layout.order == PipelineOrder::interleaved && layout.pipeline > 1 && layout.chunks < 2)
    refuse("parallel.interleave", "at least 2, because parallel.schedule is interleaved",
           std::to_string(config.parallel.interleave), "");
}

void check_device(const MemorySettings& memory, int ranks) {
  if (!memory.device) return;
  if (memory.device_bandwidth == 0)
    refuse("memory.device", "memory.simulated_device.bandwidth next to it", show(*memory.device),
           "GPUs are not supported in this version; memory.simulated_device.bandwidth=8GB simulates a device");
  if (ranks > 1)
    refuse("memory.device", "a run of one rank", fmt::format("{} with {} ranks", show(*memory.device), ranks),
           "devices are not supported with several ranks");
}

void check_optimizer(const TrainSettings& train, const Layout& layout) {
  if (!layout.divides_parameters()) return;
  if (const OptimizerRow& optimizer = row_of(train.optimizer); !optimizer.elementwise)
    refuse("train.optimizer",
           optimizer_words([](const OptimizerRow& row) { return row.elementwise; }) +
               " with parallel.zero, parallel.tensor or parallel.expert",
           std::string(optimizer.word), "it needs whole parameters, but these settings split them over ranks");
  if (train.optimizer_state == Packing::int8)
    refuse("train.optimizer_state", "fp32 or bf16 with parallel.zero, parallel.tensor or parallel.expert", "int8",
           "int8 is not supported there: ranks would split blocks that have one scale");
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

Layout resolve_layout(const Config& config, int ranks, std::string_view from) {
  const Layout layout = fitting_layout(config.parallel, layout_of(config), ranks, from);
  Mistakes mistakes;
  mistakes.none_in([&] { check_batch(config, layout, from); });
  mistakes.none_in([&] { check_axes(config, layout); });
  mistakes.none_in([&] { check_device(config.memory, ranks); });
  mistakes.none_in([&] { check_optimizer(config.train, layout); });
  mistakes.throw_any();
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
