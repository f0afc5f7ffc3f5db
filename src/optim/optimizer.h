// Optimizers work on slices of flat buffers. A slice is a contiguous range of one parameter's elements with its gradient and
// its state. An optimizer that needs statistics of a whole parameter (Adafactor's rows and columns) has two phases. It first
// adds up small vectors, which can be reduced over slices and ranks. Then it applies the update.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "config/config.h"

namespace megalith {

struct ParameterFacts {
  std::string name;
  std::vector<int64_t> shape;
  bool decays = true;  // false for norms and biases: no weight decay
  int64_t number = 0;  // number of the parameter in the model; key of random rounding
  double sign_rate = 0;  // > 0: moves by this amount per update, without gradient descent; see sign_steps.h
};

// The size of a slot of state: one float per element, or one per row or column of a matrix.
enum class SlotExtent { element, row, column };

struct SlotSpec {
  std::string name;  // "exp_avg": the tensor is saved as <parameter>.<name>
  SlotExtent extent = SlotExtent::element;
  bool negative = true;  // false if its numbers are never negative
};

struct ParameterSlice {
  const ParameterFacts* parameter = nullptr;  // borrowed
  int64_t begin = 0;                          // first element of the slice inside the parameter
  std::span<float> value;
  std::span<const float> gradient;            // gradient of the slice, not yet scaled
  std::vector<std::span<float>> slots;        // in slots() order; element slots are cut like `value`, others are whole
};

struct Update {
  double lr = 0;
  double gradient_scale = 1;  // factor for every gradient element, from clipping and loss scale
  int64_t step = 1;           // number of this update, from 1; skipped steps do not count
  uint64_t seed = 0;          // key of random rounding, together with `step`
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual std::vector<SlotSpec> slots(const ParameterFacts& parameter) const = 0;

  // Number of rounds of statistics before apply. Round r may use the reduced vectors of the rounds before it.
  virtual int statistics_rounds() const { return 0; }
  virtual int64_t statistics_size(const ParameterFacts&, int /*round*/) const { return 0; }
  // Adds this slice's part to `statistics`, which the caller sets to zero before the first slice.
  virtual void gather(int /*round*/, const ParameterSlice&, const Update&,
                      const std::vector<std::vector<double>>& /*earlier*/, std::span<double> /*statistics*/) const {}
  virtual void apply(const ParameterSlice& slice, const Update& update,
                     const std::vector<std::vector<double>>& statistics) const = 0;
};

// The result also handles parameters with a sign_rate (sign_steps.h).
std::unique_ptr<Optimizer> make_optimizer(const TrainSettings& settings);

// Returns the sum of squares, computed in double over fixed chunks. The result does not depend on budget, thread count or
// layout.
double sum_of_squares(std::span<const float> values);

}  // namespace megalith
