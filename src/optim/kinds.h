// The optimizers, one file each; make_optimizer chooses.
#pragma once
#include <memory>

#include "optim/optimizer.h"

namespace megalith {

std::unique_ptr<Optimizer> make_adamw(const TrainSettings& settings);
std::unique_ptr<Optimizer> make_sgd(const TrainSettings& settings);
std::unique_ptr<Optimizer> make_lion(const TrainSettings& settings);
std::unique_ptr<Optimizer> make_adafactor(const TrainSettings& settings);

}  // namespace megalith
