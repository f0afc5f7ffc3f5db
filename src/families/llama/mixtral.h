#pragma once
#include "families/model_shape.h"

namespace megalith::llama {

// True if Hugging Face's Mixtral has exactly these layers. Otherwise its Qwen2-MoE has them, or none of its models.
bool is_mixtral(const ModelShape& shape);  // shape.cpp

}  // namespace megalith::llama
