// Optimizers work on slices of flat buffers: a contiguous range of one parameter's elements with its gradient and
// its state. One that needs statistics of a whole parameter (Adafactor's rows and columns) first adds up small
// vectors that can be reduced over slices and ranks, then applies.
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
  int64_t number = 0;  // in the model: keys random rounding
  double sign_rate = 0;  // > 0: not descended on; see sign_steps.h
};

// How much state a slot has: one float an element, or one a row or column of a matrix.
enum class SlotExtent { element, row, column };

struct SlotSpec {
  std::string name;  // "exp_avg": the tensor is saved as <parameter>.<name>
  SlotExtent extent = SlotExtent::element;
  bool negative = true;  // false: its numbers are never below zero
};

struct ParameterSlice {
  const ParameterFacts* parameter = nullptr;  // borrowed
  int64_t begin = 0;                          // first element of the slice inside the parameter
  std::span<float> value;
  std::span<const float> gradient;            // of the slice, not yet scaled
  std::vector<std::span<float>> slots;        // in slots() order; element slots cut like value, others whole
};

struct Update {
  double lr = 0;
  double gradient_scale = 1;  // clipping, loss scale: multiplies every gradient element first
  int64_t step = 1;           // number of this update, from 1; skipped steps do not count
  uint64_t seed = 0;          // with step: keys random rounding
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual std::vector<SlotSpec> slots(const ParameterFacts& parameter) const = 0;

  // Rounds of statistics before apply. Round r's vector may use those of rounds < r, already reduced.
  virtual int statistics_rounds() const { return 0; }
  virtual int64_t statistics_size(const ParameterFacts&, int /*round*/) const { return 0; }
  // Adds this slice's share to `statistics` (zeroed by the caller before the first slice).
  virtual void gather(int /*round*/, const ParameterSlice&, const Update&,
                      const std::vector<std::vector<double>>& /*earlier*/, std::span<double> /*statistics*/) const {}
  virtual void apply(const ParameterSlice& slice, const Update& update,
                     const std::vector<std::vector<double>>& statistics) const = 0;
};

// Also moves parameters with a sign_rate (sign_steps.h).
std::unique_ptr<Optimizer> make_optimizer(const TrainSettings& settings);

// Sum of squares in double over fixed chunks: the same for every budget, thread count and layout.
double sum_of_squares(std::span<const float> values);

}  // namespace megalith
