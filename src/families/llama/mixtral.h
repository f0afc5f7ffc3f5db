#pragma once
#include "families/model_shape.h"

namespace megalith::llama {

// Whether Hugging Face's Mixtral has exactly these layers; else its Qwen2-MoE has them, or nothing of theirs.
bool is_mixtral(const ModelShape& shape);  // shape.cpp

}  // namespace megalith::llama
