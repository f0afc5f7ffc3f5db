// What the files of this folder share.
#pragma once
#include "families/family.h"

namespace megalith::bert {

std::vector<BlockSpec> parameters(const ModelShape& shape, const Mesh& mesh);            // parameters.cpp
BlockFacts facts(const BlockSpec& block, const RankSizes& sizes);                          // facts.cpp
HfNames hf_names();                                                                        // hugging_face.cpp
void read_config(const HfFields& fields, ModelShape& shape);
void write_config(const ModelShape& shape, nlohmann::ordered_json& config);

}  // namespace megalith::bert
