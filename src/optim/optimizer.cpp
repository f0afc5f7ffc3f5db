#include "optim/optimizer.h"

#include "base/error.h"
#include "optim/kinds.h"

namespace megalith {

std::unique_ptr<Optimizer> make_optimizer(const TrainSettings& settings) {
  switch (settings.optimizer) {
    case OptimizerKind::adamw:
      return make_adamw(settings);
    case OptimizerKind::sgd:
      return make_sgd(settings);
    case OptimizerKind::lion:
      return make_lion(settings);
    case OptimizerKind::adafactor:
      return make_adafactor(settings);
  }
  MEGALITH_ASSERT(false, "optimizer {}", static_cast<int>(settings.optimizer));
}

}  // namespace megalith
