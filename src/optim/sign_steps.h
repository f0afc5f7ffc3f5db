// Some parameters do not use gradient descent. Each update moves them by a fixed amount against the sign of their gradient,
// with any optimizer. An example is the balancing bias of a router, whose gradient counts tokens.
#pragma once
#include <memory>

#include "optim/optimizer.h"

namespace megalith {

// Returns an optimizer that moves parameters with a sign_rate in this way and uses `others` for the rest. Parameters with a
// sign_rate have optimizer state, too, but it never changes.
std::unique_ptr<Optimizer> with_sign_steps(std::unique_ptr<Optimizer> others);

}  // namespace megalith
