// The memory order of a weight matrix.
#pragma once

namespace megalith {

enum class MatrixOrder { out_in, in_out };  // torch.nn.Linear and GPT-2's Conv1D

}  // namespace megalith
