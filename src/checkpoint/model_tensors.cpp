#include "checkpoint/model_tensors.h"

#include "checkpoint/reader.h"
#include "families/block_spec.h"

namespace megalith {

std::vector<TensorSpec> tensors_of(const ModelShape& shape, DType dtype) {
  std::vector<TensorSpec> tensors;
  for (const BlockSpec& block : list_blocks(shape))
    for (const ParameterSpec& p : block.parameters) tensors.push_back({p.name, dtype, p.shape});
  return tensors;
}

void check_weights(const ModelShape& shape, const std::filesystem::path& folder, HeadUse head) {
  WeightSource::open_model(folder).check_matches(tensors_of(shape, DType::f32), head_of(shape, head));
}

}  // namespace megalith
