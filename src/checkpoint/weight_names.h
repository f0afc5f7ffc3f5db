// How Hugging Face files differ in naming the same tensors. Each family lists its own names
// (families/*/hugging_face.cpp), as the checkpoints have them that transformers (4.x, 5.22) writes and loads.
#pragma once
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/tensor_spec.h"

namespace megalith {

// The names under which a tensor may lie in a file, its own first: bare models have no leading
// "transformer.", "bert." or "model."; files from the time of TensorFlow say LayerNorm.gamma and beta.
std::vector<std::string> other_spellings(const std::string& name);

// A tensor that holds the same values when the head is tied: the head of an embedding table and so on. Empty:
// none.
std::string tied_to(const std::string& table);

// The other way: `stored` is one side of a tied pair in some spelling, and only the other side is wanted.
// Returns the table (wanted: `stored` is a copy that must be equal; not wanted: `stored` is itself the table,
// which an untied model does not use). Empty: `stored` is no such thing.
std::string table_behind(const std::string& stored, const std::set<std::string>& wanted);

// The tensor in which files repeat the values of this parameter: transformers expects it, but does not compute with it.
// Empty: none.
std::string copy_in_files(const std::string& parameter);
// `parameters` with these tensors, each after its parameter: what a file of weights contains.
std::vector<TensorSpec> with_copies(const std::vector<TensorSpec>& parameters);

// Buffers, and heads for tasks that we do not train.
bool is_no_parameter(std::string_view stored);

}  // namespace megalith
