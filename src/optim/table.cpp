// The table of optimizers. Each optimizer is in a file of its own.
#include "base/error.h"
#include "optim/optimizer.h"
#include "optim/sign_steps.h"

namespace megalith {

std::unique_ptr<Optimizer> make_adamw(const TrainSettings& settings);
std::unique_ptr<Optimizer> make_sgd(const TrainSettings& settings);
std::unique_ptr<Optimizer> make_lion(const TrainSettings& settings);
std::unique_ptr<Optimizer> make_adafactor(const TrainSettings& settings);

namespace {

struct OptimizerMaker {
  OptimizerKind kind;
  std::unique_ptr<Optimizer> (*make)(const TrainSettings& settings);
};

constexpr OptimizerMaker kMakers[] = {
    {OptimizerKind::adamw, make_adamw},
    {OptimizerKind::sgd, make_sgd},
    {OptimizerKind::lion, make_lion},
    {OptimizerKind::adafactor, make_adafactor},
};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const TrainSettings& settings) {
  for (const OptimizerMaker& maker : kMakers)
    if (maker.kind == settings.optimizer) return with_sign_steps(maker.make(settings));
  MEGALITH_ASSERT(false, "optim/table.cpp has no row for {}", row_of(settings.optimizer).word);
}

}  // namespace megalith
