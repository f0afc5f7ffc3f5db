// The commands memory and simulate. They show what a run needs and predict one step. They do not train and write no files
// except those that the user names.
#include <sys/ioctl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "checkpoint/store.h"
#include "cli/run_file.h"
#include "commands/commands.h"
#include "commands/run_text.h"
#include "config/resolve_layout.h"
#include "planner/memory_table.h"
#include "planner/plan_json.h"
#include "planner/shape_forecast.h"
#include "run/foresee.h"
#include "schedule/op_type.h"
#include "schedule/passes/residency.h"
#include "schedule/predict/memory_curve.h"
#include "schedule/predict/roofline.h"
#include "schedule/show/draw.h"
#include "schedule/show/draw_svg.h"
#include "schedule/show/step_json.h"

namespace megalith {
namespace {

// Predicts a run of `ranks` ranks on this host. If `ranks` is 0, the axes give the number of ranks, with one copy of the
// model if parallel.data is auto.
Foreseen foresee_on_this_host(const Config& config, int ranks) {
  const Layout layout = check_run(config, ranks > 0 ? ranks : layout_of(config).ranks());
  return foresee(config, layout,
                 {layout.ranks(), newest_checkpoint(std::filesystem::path(config.run.dir) / "checkpoints")});
}

CommandResult memory(const CommandContext& context, const Config& config, int ranks) {
  const Foreseen foreseen = foresee_on_this_host(config, ranks);
  const auto& [tokenizer, run, input] = foreseen;
  std::vector<std::string> notes = run.notes;
  MemoryTable table;
  std::vector<ShapeForecast> shapes;
  int64_t micro_batch = 1;
  try {
    const Plan plan = make_plan(input, Measuring::forbidden);
    micro_batch = plan.micro_batch;
    table = memory_table(plan);
    shapes = forecast_shapes(input, plan, run.shapes, run.steps);
    if (!plan.measured && !table.strategy.empty())
      notes.push_back("planned with the speeds of an ordinary machine, because this one has not been measured yet "
                      "(`megalith simulate` measures it)");
  } catch (const DoesNotFit& error) {
    micro_batch = error.shortfall.micro_batch;
    table = memory_table(error.shortfall);
  }
  print(context, fmt::format("{}, {}\n{}\n{}{}", model_line(run), step_line(input, micro_batch), show(table),
                             shape_lines(shapes, false), lines(notes)));
  nlohmann::json json = to_json(table);
  json["shapes"] = to_json(shapes);
  json["micro_batch"] = micro_batch;
  json["notes"] = notes;
  return {table.fits ? ExitCode::done : ExitCode::user, std::move(json)};
}

int terminal_columns() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 100;
  return std::clamp<int>(size.ws_col, 60, 160);
}

double peak_moment(const Plan& plan) {
  for (const MemoryPoint& point : memory_over_time(plan.step, plan.predicted.spans))
    if (point.use.total() == plan.predicted.peak_bytes) return point.seconds;
  return 0;
}

std::string figures(const Plan& plan, const PlanInput& input) {
  const Simulation& step = plan.predicted;
  const auto useful = useful_seconds(plan.step, plan.speeds);
  const double tokens = static_cast<double>(input.batch * input.sequence);
  std::string text = fmt::format("step time    {}, {:.0f} tokens/s\n", show_seconds(step.seconds), tokens / step.seconds);
  const Resource bound = binding(useful);
  text += fmt::format("bound by     {}, at {:.0f}% of the limit", name(bound),
                      100 * useful[static_cast<size_t>(bound)] / step.seconds);
  for (size_t r = 0; r < kResources; r++)
    if (useful[r] > 0 && static_cast<Resource>(r) != bound)
      text += fmt::format("; {} {:.0f}%", name(static_cast<Resource>(r)), 100 * useful[r] / step.seconds);
  text += '\n';
  text += fmt::format("peak memory  {} of {}, reached at {}{}\n", show(plan.predicted_peak()), show(plan.budget),
                      show_seconds(peak_moment(plan)),
                      step.peak_op == kNoOp ? "" : " in the op " + describe(plan.step, step.peak_op));
  if (plan.device_budget.value > 0) {
    int64_t up = 0, down = 0;
    for (const Op& op : plan.step.ops) (op.lane == Lane::upload ? up : down) += traffic_of(plan.step, op).copied;
    text += fmt::format("device       {} of {}; {} uploaded, {} downloaded\n", show(Bytes(step.on_device.total())),
                        show(plan.device_budget), show(Bytes(up)), show(Bytes(down)));
  }
  const auto traffic = traffic_by_lane(plan.step);
  for (size_t l = 0; l < kLanes; l++)
    if (traffic[l].read + traffic[l].written > 0)
      text += fmt::format("{:<5} lane   {} read, {} written\n", name(static_cast<Lane>(l)), show(Bytes(traffic[l].read)),
                          show(Bytes(traffic[l].written)));
  // Only waits of the compute lane are lost time. Other lanes wait because they have no work.
  bool any = false;
  for (const Stall& stall : step.stalls) {
    if (stall.lane != Lane::compute || stall.seconds < 0.001 * step.seconds) continue;
    text += fmt::format("{} compute waits {} ({:.1f}%) for {}\n", any ? "            " : "stalls      ",
                        show_seconds(stall.seconds), 100 * stall.seconds / step.seconds, name(stall.waited_for));
    any = true;
  }
  if (!any) text += "stalls       none: the compute lane never waits\n";
  if (plan.predicted_stages.size() == 1) return text;
  for (size_t stage = 0; stage < plan.predicted_stages.size(); stage++) {
    const Simulation& it = plan.predicted_stages[stage];
    text += fmt::format("stage {:<6} computes {}, waits {} ({:.1f}%) for other ranks, peak memory {}\n", stage,
                        show_seconds(it.busy[static_cast<size_t>(Lane::compute)]), show_seconds(it.waited_for_ranks),
                        100 * it.waited_for_ranks / it.seconds, show(Bytes(it.peak_bytes) + plan.process));
  }
  return text;
}

std::string about_links(const Links& links) {
  return fmt::format(
      "exchanges between ranks have not been measured on this machine (`megalith train` measures them): predicted with {} "
      "per second and {} per call",
      show(Bytes(static_cast<int64_t>(links[0].bytes_per_s))), show_seconds(links[0].latency_s));
}

CommandResult simulate_run(const CommandContext& context, const Config& config, const OutlookArguments& a) {
  const Foreseen foreseen = foresee_on_this_host(config, a.ranks);
  const auto& [tokenizer, run, input] = foreseen;
  const Plan plan = make_plan(input);
  std::vector<std::string> notes = run.notes;
  if (!plan.links_measured) notes.push_back(about_links(plan.speeds.links));
  const std::string what = fmt::format("{}, {}", model_line(run), step_line(input, plan.micro_batch));
  const std::string how = describe(plan.strategy);
  const std::vector<ShapeForecast> shapes = forecast_shapes(input, plan, run.shapes, run.steps);
  print(context, fmt::format("{}\n{}{}\n{}\n{}{}", what, lines(notes), lines(plan.adapted),
                             draw_timeline(plan.step, plan.predicted.spans, terminal_columns()),
                             figures(plan, input), shape_lines(shapes, true)));
  if (!a.svg.empty()) {
    const std::string subtitle = fmt::format("one step, predicted: {}{}{}", show_seconds(plan.predicted.seconds),
                                             how.empty() ? "" : "; ", how);
    write_file_atomically(
        a.svg, draw_svg({what, subtitle, &plan.step, plan.predicted.spans, plan.process.value, plan.budget.value}));
    print(context, fmt::format("picture      {}\n", a.svg));
  }
  if (!a.trace.empty()) {
    write_file_atomically(a.trace, trace_json({{"predicted", &plan.step, plan.predicted.spans}}));
    print(context, fmt::format("trace        {}\n", a.trace));
  }
  nlohmann::json json = to_json(plan, input);
  json["shapes"] = to_json(shapes);
  json["predicted"]["peak_at_s"] = peak_moment(plan);
  json["ops"] = ops_json(plan.step, op_seconds(plan.predicted.spans));
  json["notes"] = notes;
  return {ExitCode::done, std::move(json)};
}

}  // namespace

CommandResult run_memory(const CommandContext& context, const OutlookArguments& a) {
  return from_run_file(a.path, a.overrides, [&](const Config& config) { return memory(context, config, a.ranks); });
}

CommandResult run_simulate(const CommandContext& context, const OutlookArguments& a) {
  return from_run_file(a.path, a.overrides, [&](const Config& config) { return simulate_run(context, config, a); });
}

}  // namespace megalith
