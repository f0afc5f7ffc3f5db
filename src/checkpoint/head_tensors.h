// The head of a model as tensors. Bare models of Hugging Face (BertModel, LlamaModel) are folders without it.
#pragma once
#include <set>
#include <string>
#include <string_view>

#include "families/model_shape.h"

namespace megalith {

// Says how the head of a folder's model is used.
enum class HeadUse {
  required,      // generate, export, resume: the folder must have it
  replaceable,   // model.from: the same, but model.new_head could start one
  fresh,         // model.new_head, or a model without one: not read; the folder may have this head, another one or none
};

struct HeadTensors {
  HeadUse use = HeadUse::required;
  std::string_view what;        // "masked-language head"
  std::string_view base;        // prefix of all other tensors of the model, unless the folder is a bare model
  std::set<std::string> names;  // of its parameters; empty: none besides a tied table

  bool has(const std::string& parameter) const { return names.contains(parameter); }
};

HeadTensors head_of(const ModelShape& shape, HeadUse use);

}  // namespace megalith
