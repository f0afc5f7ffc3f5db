// Gradient descent with momentum, as in torch.optim.SGD. Weight decay is part of the gradient (not decoupled). The momentum
// starts with the first gradient; a buffer of zeros gives the same result.
//   g += wd p;  b = momentum b + g;  p -= lr b
#include "base/error.h"
#include "optim/kernel.h"
#include "optim/optimizer.h"

namespace megalith {
namespace {

struct Factors {
  float gradient, decay, momentum, rate;
};

MEGALITH_KERNEL void with_momentum(const Factors f, int64_t n, float* __restrict p, const float* __restrict g,
                                   float* __restrict buffer) {
  for (int64_t i = 0; i < n; i++) {
    buffer[i] = f.momentum * buffer[i] + (g[i] * f.gradient + f.decay * p[i]);
    p[i] -= f.rate * buffer[i];
  }
}

MEGALITH_KERNEL void plain(const Factors f, int64_t n, float* __restrict p, const float* __restrict g) {
  for (int64_t i = 0; i < n; i++) p[i] -= f.rate * (g[i] * f.gradient + f.decay * p[i]);
}

class Sgd final : public Optimizer {
 public:
  explicit Sgd(const TrainSettings& s) : momentum_(s.momentum), decay_(s.weight_decay) {}

  std::vector<SlotSpec> slots(const ParameterFacts&) const override {
    if (momentum_ == 0) return {};
    return {{"momentum_buffer"}};
  }

  void apply(const ParameterSlice& slice, const Update& update,
             const std::vector<std::vector<double>>&) const override {
    MEGALITH_ASSERT(slice.slots.size() == (momentum_ == 0 ? 0 : 1), "{}", slice.parameter->name);
    const Factors factors{.gradient = static_cast<float>(update.gradient_scale),
                          .decay = static_cast<float>(slice.parameter->decays ? decay_ : 0),
                          .momentum = static_cast<float>(momentum_),
                          .rate = static_cast<float>(update.lr)};
    for_chunks(std::ssize(slice.value), kElementChunk, [&](int64_t begin, int64_t end) {
      float* value = slice.value.data() + begin;
      const float* gradient = slice.gradient.data() + begin;
      if (momentum_ == 0)
        plain(factors, end - begin, value, gradient);
      else
        with_momentum(factors, end - begin, value, gradient, slice.slots[0].data() + begin);
    });
  }

 private:
  double momentum_, decay_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(const TrainSettings& settings) {
  return std::make_unique<Sgd>(settings);
}

}  // namespace megalith
