// What the files of this folder share.
#pragma once
#include "families/family.h"

namespace megalith::llama {

std::vector<BlockSpec> parameters(const ModelShape& shape, const Mesh& mesh);            // parameters.cpp
BlockFacts facts(const BlockSpec& block, const RankSizes& sizes);                          // facts.cpp
HfNames hf_names();                                                                        // hugging_face.cpp
void read_config(const HfFields& fields, ModelShape& shape);
void write_config(const ModelShape& shape, nlohmann::ordered_json& config);

// Whether Hugging Face's Mixtral has exactly these layers; else its Qwen2-MoE has them, or nothing of theirs.
bool is_mixtral(const ModelShape& shape);                                                  // shape.cpp

}  // namespace megalith::llama
