// The different names that Hugging Face files use for the same tensors. Each family lists its own names
// (families/*/hugging_face.cpp): those in checkpoints that transformers (4.x, 5.22) writes and loads.
#pragma once
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/tensor_spec.h"

namespace megalith {

// Returns the names that a tensor may have in a file, its own first. Bare models have no leading "transformer.", "bert."
// or "model.". Old files converted from TensorFlow use LayerNorm.gamma and beta.
std::vector<std::string> other_spellings(const std::string& name);

// Returns the name of the tensor that equals `table` if the head is tied: the head of an embedding table. Empty if there
// is no such tensor.
std::string tied_to(const std::string& table);

// For a stored tensor that is not wanted, although the other tensor of its tied pair is. Returns the table of the pair. If
// the table is wanted, `stored` is the head, which must be equal to the table. Otherwise `stored` is the table itself.
// Returns an empty name if `stored` is no such tensor.
std::string table_behind(const std::string& stored, const std::set<std::string>& wanted);

// Returns the tensor in which files repeat the values of this parameter. transformers expects it, but does not compute
// with it. Empty if there is none.
std::string copy_in_files(const std::string& parameter);
// Returns `parameters` with these copies, each after its parameter: the content of a file of weights.
std::vector<TensorSpec> with_copies(const std::vector<TensorSpec>& parameters);

// True for buffers, and for heads of tasks that we do not train.
bool is_no_parameter(std::string_view stored);

}  // namespace megalith
