#include "checkpoint/head_tensors.h"

#include "families/block_spec.h"
#include "families/family.h"

namespace megalith {

HeadTensors head_of(const ModelShape& shape, HeadUse use) {
  if (shape.head == HeadKind::representation) use = HeadUse::fresh;
  HeadTensors head{.use = use,
                   .what = shape.family->bidirectional ? "masked-language head" : "language-model head",
                   .base = shape.family->hf_names().prefix};
  const std::vector<BlockSpec> blocks = list_blocks(shape);
  for (const ParameterSpec& parameter : blocks.back().parameters)  // the head block also has the last norm of the base model
    if (!parameter.name.starts_with(head.base)) head.names.insert(parameter.name);
  return head;
}

}  // namespace megalith
