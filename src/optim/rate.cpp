#include "optim/rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace megalith {

double learning_rate(const TrainSettings& settings, double step) {
  const double lr = settings.lr, low = settings.min_lr;
  const int64_t peak = std::max<int64_t>(0, settings.warmup - 1), last = settings.steps - 1;
  if (settings.warmup > 0 && step <= static_cast<double>(peak))
    return std::min(lr, lr * (step + 1) / static_cast<double>(settings.warmup));
  if (settings.decay == Decay::constant || (settings.decay == Decay::wsd && settings.decay_steps == 0)) return lr;
  if (settings.decay == Decay::inverse_sqrt)
    return lr * std::sqrt(static_cast<double>(std::max<int64_t>(1, settings.warmup)) /
                          (step + 1));

  if (step > static_cast<double>(last)) return low;
  const int64_t begin = settings.decay == Decay::wsd ? std::max(peak, last - settings.decay_steps) : peak;
  if (last <= begin) return lr;  // a run of one step
  if (settings.decay == Decay::wsd && step <= static_cast<double>(begin)) return lr;  // exactly lr
  const double done = std::max(0.0, step - static_cast<double>(begin)) / static_cast<double>(last - begin);
  const double left = settings.decay == Decay::cosine ? 0.5 * (1 + std::cos(std::numbers::pi * done)) : 1 - done;
  return low + (lr - low) * left;
}

}  // namespace megalith
