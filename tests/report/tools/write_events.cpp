// write_events DIR: event files of a run of 30 steps that was killed at 30 and resumed after 20, for
// tensorboard_agreement.py, which knows the same formulas.
#include <cmath>
#include <limits>

#include "report/tensorboard.h"

using namespace megalith;

static StepMetrics at_step(int64_t step, double shift) {
  StepMetrics m;
  m.step = step;
  m[MetricId::loss] = 10.0 / static_cast<double>(step) + shift;
  m[MetricId::lr] = 1e-3 / static_cast<double>(step);
  m[MetricId::grad_norm] = step == 7 ? std::numeric_limits<double>::quiet_NaN() : 0.5;
  m[MetricId::tokens_per_s] = 1500;
  m[MetricId::mem_peak_bytes] = int64_t{3} << 30;
  if (step % 10 == 0) m[MetricId::valid_loss] = m.get(MetricId::loss) + 1;
  if (step % 10 == 0) m[MetricId::save_s] = 0.25;
  m[MetricId::expert_load] = 1.5;
  m[MetricId::disk_read_bytes] = 4096;
  if (step % 10 == 0) m.sample = "step " + std::to_string(step) + "\n<b>naïve</b>";
  return m;
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  {
    TensorBoardLog first(arguments[1], 0);
    for (int64_t step = 1; step <= 30; step++) first.append(at_step(step, 0));
  }
  TensorBoardLog second(arguments[1], 20);
  for (int64_t step = 21; step <= 25; step++) second.append(at_step(step, 100));
}
