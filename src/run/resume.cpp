#include "run/resume.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/join.h"
#include "base/log.h"
#include "config/options.h"
#include "config/parse.h"
#include "config/resolved.h"
#include "data/step_shapes.h"
#include "optim/rate.h"

namespace megalith {
namespace {

// Throws UserError if a setting differs that must not change.
void check_changes(const Config& saved, const Config& next) {
  std::vector<std::string> before, after;
  for (const Difference& d : differences(saved, next)) {
    if (d.may_change) continue;
    before.push_back(d.key + " " + d.before);
    after.push_back(d.key + " " + d.after);
  }
  if (!before.empty())
    throw UserError({(std::filesystem::path(next.run.dir) / "config.yaml").string(), "", "", "",
                     fmt::format("this run started with {}; it cannot be resumed with {}; set {} back, or use a new run.dir",
                                 shortened(some_of(before)), shortened(some_of(after)), before.size() > 1 ? "them" : "it")});
}

constexpr double kJump = 0.1;  // share of the larger rate; smaller changes have no visible effect on the loss

// The rate of a step (from 0).
double rate_at(const Config& config, const StepShapes& shapes, int64_t step) {
  return learning_rate(config.train, shapes.full_steps_before(step, config.train.schedule_by));
}

}  // namespace

std::optional<Config> saved_config(const std::filesystem::path& run_dir) {
  const std::filesystem::path file = run_dir / "config.yaml";
  if (!std::filesystem::exists(file)) return std::nullopt;
  return parse_config(read_file(file), file.string(), run_dir.filename().string());
}

std::string describe_rate_jump(const Config& before, const Config& now, int64_t layers, int64_t step) {
  const StepShapes old_shapes(before, layers), shapes(now, layers);
  if (step >= shapes.steps_for(now.train.steps, now.train.schedule_by)) return "";
  // Compare both schedules at the same step: a change from one step to the next within a schedule is no jump.
  const double last = rate_at(before, old_shapes, step - 1), moved = rate_at(now, shapes, step - 1);
  if (std::abs(moved - last) <= kJump * std::max(moved, last)) return "";
  const bool ends = find_option("train.min_lr")->get(now).has_value();  // its decay ends at min_lr
  const std::string keep = ends ? fmt::format("train.lr={0:.4g} train.min_lr={0:.4g}", last)
                                : fmt::format("train.decay=constant train.lr={:.4g}", last);
  return fmt::format(
      "the learning rate jumps from {:.4g} (step {}) to {:.4g} (step {}), because the settings of its schedule changed. The loss "
      "may rise for a while. {}A run with train.decay: wsd can be extended without a jump from a checkpoint before its decay.",
      last, step, rate_at(now, shapes, step), step + 1,
      last > 0 ? fmt::format("To continue at the last learning rate, set {}. ", keep) : "");
}

Config resume_config(const std::filesystem::path& run_dir, const Config& now, const Layout& layout) {
  const std::optional<Config> saved = saved_config(run_dir);
  if (!saved) return now;
  Config wanted = now;
  wanted.parallel.data = layout.data;
  Config next = keep_decisions(*saved, wanted);
  check_changes(*saved, next);
  if (saved->parallel != wanted.parallel) {
    next.train.micro_batch = now.train.micro_batch;
    next.train.threads = now.train.threads;
  }
  return next;
}

void log_changes(const std::filesystem::path& run_dir, const Config& resumed) {
  const std::optional<Config> saved = saved_config(run_dir);
  if (!saved) return;
  for (const Difference& d : differences(*saved, resumed))
    if (d.may_change) log::info("resuming with {} changed from {} to {}", d.key, d.before, d.after);
}

}  // namespace megalith
