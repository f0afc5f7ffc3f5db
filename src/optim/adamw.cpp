// Adam with decoupled weight decay (Loshchilov & Hutter, 2019). The order of operations is that of torch.optim.AdamW:
//   p *= 1 - lr wd;  m += (1 - b1)(g - m);  v = b2 v + (1 - b2) g^2
//   p -= lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps)
#include <cmath>

#include "base/error.h"
#include "optim/kernel.h"
#include "optim/optimizer.h"

namespace megalith {
namespace {

struct Factors {  // constants of one update, rounded to float once
  float gradient, keep, mean, square_keep, square_add, root_correction, eps, rate;
};

MEGALITH_KERNEL void adamw(const Factors f, int64_t n, float* __restrict p, const float* __restrict g,
                           float* __restrict m, float* __restrict v) {
  for (int64_t i = 0; i < n; i++) {
    const float gradient = g[i] * f.gradient;
    const float mean = m[i] + f.mean * (gradient - m[i]);
    const float square = v[i] * f.square_keep + f.square_add * gradient * gradient;
    const float root = __builtin_sqrtf(square) / f.root_correction + f.eps;
    p[i] = p[i] * f.keep - f.rate * mean / root;
    m[i] = mean;
    v[i] = square;
  }
}

class AdamW final : public Optimizer {
 public:
  explicit AdamW(const TrainSettings& s)
      : beta1_(s.beta1), beta2_(s.beta2), eps_(s.eps), decay_(s.weight_decay) {}

  std::vector<SlotSpec> slots(const ParameterFacts&) const override {
    return {{"exp_avg"}, {"exp_avg_sq", SlotExtent::element, /*negative=*/false}};
  }

  void apply(const ParameterSlice& slice, const Update& update,
             const std::vector<std::vector<double>>&) const override {
    MEGALITH_ASSERT(slice.slots.size() == 2 && update.step >= 1, "{}", slice.parameter->name);
    const auto t = static_cast<double>(update.step);
    const double decay = slice.parameter->decays ? decay_ : 0;
    const Factors factors{.gradient = static_cast<float>(update.gradient_scale),
                          .keep = static_cast<float>(1 - update.lr * decay),
                          .mean = static_cast<float>(1 - beta1_),
                          .square_keep = static_cast<float>(beta2_),
                          .square_add = static_cast<float>(1 - beta2_),
                          .root_correction = static_cast<float>(std::sqrt(1 - std::pow(beta2_, t))),
                          .eps = static_cast<float>(eps_),
                          .rate = static_cast<float>(update.lr / (1 - std::pow(beta1_, t)))};
    for_chunks(std::ssize(slice.value), kElementChunk, [&](int64_t begin, int64_t end) {
      adamw(factors, end - begin, slice.value.data() + begin, slice.gradient.data() + begin,
            slice.slots[0].data() + begin, slice.slots[1].data() + begin);
    });
  }

 private:
  double beta1_, beta2_, eps_, decay_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adamw(const TrainSettings& settings) {
  return std::make_unique<AdamW>(settings);
}

}  // namespace megalith
