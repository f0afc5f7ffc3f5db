#include "optim/sign_steps.h"

namespace megalith {
namespace {

class SignSteps final : public Optimizer {
 public:
  explicit SignSteps(std::unique_ptr<Optimizer> others) : others_(std::move(others)) {}

  std::vector<SlotSpec> slots(const ParameterFacts& parameter) const override { return others_->slots(parameter); }
  int statistics_rounds() const override { return others_->statistics_rounds(); }
  int64_t statistics_size(const ParameterFacts& parameter, int round) const override {
    return others_->statistics_size(parameter, round);
  }
  void gather(int round, const ParameterSlice& slice, const Update& update, const std::vector<std::vector<double>>& earlier,
              std::span<double> statistics) const override {
    if (slice.parameter->sign_rate == 0) others_->gather(round, slice, update, earlier, statistics);
  }
  void apply(const ParameterSlice& slice, const Update& update,
             const std::vector<std::vector<double>>& statistics) const override {
    if (slice.parameter->sign_rate == 0) return others_->apply(slice, update, statistics);
    const auto rate = static_cast<float>(slice.parameter->sign_rate);
    for (size_t i = 0; i < slice.value.size(); i++)
      slice.value[i] -= rate * static_cast<float>((slice.gradient[i] > 0) - (slice.gradient[i] < 0));
  }

 private:
  std::unique_ptr<Optimizer> others_;
};

}  // namespace

std::unique_ptr<Optimizer> with_sign_steps(std::unique_ptr<Optimizer> others) {
  return std::make_unique<SignSteps>(std::move(others));
}

}  // namespace megalith
