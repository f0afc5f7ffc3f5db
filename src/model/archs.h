// One file an architecture: how its embedding, layers and head compute.
#pragma once
#include <memory>

#include "model/block.h"

namespace megalith {

std::unique_ptr<Block> make_gpt2_block(const ModelShape& shape, BlockSpec spec, const Ranks& ranks);
std::unique_ptr<Block> make_llama_block(const ModelShape& shape, BlockSpec spec, const Ranks& ranks);
std::unique_ptr<Block> make_bert_block(const ModelShape& shape, BlockSpec spec, const Ranks& ranks);

}  // namespace megalith
