// The optimizers, one row each. Options, messages and the planner read the row; they never compare names. To add an
// element-wise optimizer, add an enumerator and a row here, a file in optim/ and a row in optim/table.cpp.
#pragma once
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace megalith {

enum class OptimizerKind { adamw, sgd, lion, adafactor };  // in the order of the rows

struct OptimizerRow {
  OptimizerKind kind;
  std::string_view word;  // train.optimizer
  // The options that the optimizer reads, in addition to train.lr and train.weight_decay.
  bool betas = false, eps = false, momentum = false;
  // True: each element is updated from its own gradient and state. So the state can be packed, and the parameters can be
  // cut anywhere. False: the optimizer looks at rows and columns of whole parameters.
  bool elementwise = true;
  int state_floats = 1;  // floats of state per element, with default settings; 0: much less than one
};

inline constexpr auto kOptimizers = std::to_array<OptimizerRow>({
    {.kind = OptimizerKind::adamw, .word = "adamw", .betas = true, .eps = true, .state_floats = 2},
    {.kind = OptimizerKind::sgd, .word = "sgd", .momentum = true},
    {.kind = OptimizerKind::lion, .word = "lion", .betas = true},
    {.kind = OptimizerKind::adafactor, .word = "adafactor", .elementwise = false, .state_floats = 0},
});
static_assert([] {
  for (size_t i = 0; i < kOptimizers.size(); i++)
    if (kOptimizers[i].kind != static_cast<OptimizerKind>(i)) return false;
  return true;
}(), "rows stand in the order of OptimizerKind");

constexpr const OptimizerRow& row_of(OptimizerKind kind) { return kOptimizers[static_cast<size_t>(kind)]; }

// Returns the words of the optimizers for which `chosen` is true, for messages: "adamw, sgd or lion".
std::string optimizer_words(bool (*chosen)(const OptimizerRow&), std::string_view before_last = " or ");

}  // namespace megalith
