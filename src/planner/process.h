// What the process itself takes of the budget: code, libraries, threads, tokenizer. Every command measures it in the same
// state, before there is data or a model, so that `memory` and `train` plan with one figure.
#pragma once
#include "base/units.h"
#include "planner/plan_input.h"

namespace megalith {

// Starts the threads of the matrix library, then measures. Rounded up to whole steps of 4 MiB, because two processes of the
// same program differ by some hundred KiB. `transport`: what was measured of the ranks' transport, which the figure leaves
// out because `memory` has none.
Bytes measured_process(Bytes transport = Bytes(0));

// What is not there yet when the process is measured, at most.
Bytes tokenizer_to_come(int64_t vocabulary);
Bytes transport_of(int ranks);
// Copies that the matrix library makes of its operands and keeps: one of each operand of the largest product, up to a limit.
Bytes product_buffers(const PlanInput& input);

// The figure of a process that has its data by now. Larger only if these take more than a bound has room for.
Bytes with_data(Bytes process);

}  // namespace megalith
