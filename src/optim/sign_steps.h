// Parameters that are not descended on but move by a fixed amount against the sign of their gradient, whatever optimizer
// the others have: a router's balancing bias, whose gradient counts tokens.
#pragma once
#include <memory>

#include "optim/optimizer.h"

namespace megalith {

// `others`, but for parameters with a sign_rate. Their state is there, and stays empty.
std::unique_ptr<Optimizer> with_sign_steps(std::unique_ptr<Optimizer> others);

}  // namespace megalith
