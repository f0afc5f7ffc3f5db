// Lion (Chen et al., "Symbolic discovery of optimization algorithms", 2023, algorithm 2). All elements move by the same
// amount, and only the sign differs.
//   p *= 1 - lr wd;  p -= lr sign(b1 m + (1 - b1) g);  m = b2 m + (1 - b2) g        sign(0) = 0
#include "base/error.h"
#include "optim/kernel.h"
#include "optim/optimizer.h"

namespace megalith {
namespace {

struct Factors {
  float gradient, keep, blend_mean, blend_gradient, mean_keep, mean_add, rate;
};

MEGALITH_KERNEL void lion(const Factors f, int64_t n, float* __restrict p, const float* __restrict g,
                          float* __restrict m) {
  for (int64_t i = 0; i < n; i++) {
    const float gradient = g[i] * f.gradient;
    const float blend = f.blend_mean * m[i] + f.blend_gradient * gradient;
    const float sign = static_cast<float>((blend > 0) - (blend < 0));
    p[i] = p[i] * f.keep - f.rate * sign;
    m[i] = f.mean_keep * m[i] + f.mean_add * gradient;
  }
}

class Lion final : public Optimizer {
 public:
  explicit Lion(const TrainSettings& s) : beta1_(s.beta1), beta2_(s.beta2), decay_(s.weight_decay) {}

  std::vector<SlotSpec> slots(const ParameterFacts&) const override { return {{"exp_avg"}}; }

  void apply(const ParameterSlice& slice, const Update& update,
             const std::vector<std::vector<double>>&) const override {
    MEGALITH_ASSERT(slice.slots.size() == 1, "{}", slice.parameter->name);
    const double decay = slice.parameter->decays ? decay_ : 0;
    const Factors factors{.gradient = static_cast<float>(update.gradient_scale),
                          .keep = static_cast<float>(1 - update.lr * decay),
                          .blend_mean = static_cast<float>(beta1_),
                          .blend_gradient = static_cast<float>(1 - beta1_),
                          .mean_keep = static_cast<float>(beta2_),
                          .mean_add = static_cast<float>(1 - beta2_),
                          .rate = static_cast<float>(update.lr)};
    for_chunks(std::ssize(slice.value), kElementChunk, [&](int64_t begin, int64_t end) {
      lion(factors, end - begin, slice.value.data() + begin, slice.gradient.data() + begin,
           slice.slots[0].data() + begin);
    });
  }

 private:
  double beta1_, beta2_, decay_;
};

}  // namespace

std::unique_ptr<Optimizer> make_lion(const TrainSettings& settings) {
  return std::make_unique<Lion>(settings);
}

}  // namespace megalith
