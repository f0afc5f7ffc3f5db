// The share of the budget that the process itself needs: code, libraries, threads, tokenizer. Every command measures it in
// the same state, before there is data or a model. So `memory` and `train` plan with the same number.
#pragma once
#include "base/units.h"
#include "planner/plan_input.h"

namespace megalith {

// Starts the threads of the matrix library, then measures. Rounds up to a multiple of 4 MiB, because two processes of the
// same program differ by some hundred KiB. `transport` is the measured memory of the ranks' transport. The result does not
// include it, because `memory` has no transport.
Bytes measured_process(Bytes transport = Bytes(0));

// These return the most memory that the process gets after it is measured: for the tokenizer, and for MPI.
Bytes tokenizer_to_come(int64_t vocabulary);
Bytes transport_of(int ranks);
// Copies that the matrix library makes of its operands and keeps: one of each operand of the largest product, up to a limit.
Bytes product_buffers(const PlanInput& input);

// Returns the memory of a process that has loaded its data. It is larger than `process` only if the data needs more than
// the bound reserves for it.
Bytes with_data(Bytes process);

}  // namespace megalith
