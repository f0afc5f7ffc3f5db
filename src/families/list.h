// The table of families. To add a family, add a folder families/NAME and its name here.
#pragma once
#include "families/family.h"

#define MEGALITH_FAMILIES(F) F(gpt2) F(llama) F(bert)

namespace megalith {

// gpt2_family, llama_family, ...: the tables, defined in shape.cpp of each folder. The other files of the folder define
// the functions of the table.
#define MEGALITH_DECLARE_FAMILY(name)                                           \
  extern const Family name##_family;                                            \
  namespace name {                                                              \
  std::vector<BlockSpec> parameters(const ModelShape& shape, const Mesh& mesh); \
  BlockCosts facts(const BlockSpec& block, const RankSizes& sizes);             \
  HfNames hf_names();                                                           \
  void read_config(const HfFields& fields, ModelShape& shape);                  \
  void write_config(const ModelShape& shape, nlohmann::ordered_json& config);   \
  }
MEGALITH_FAMILIES(MEGALITH_DECLARE_FAMILY)
#undef MEGALITH_DECLARE_FAMILY

}  // namespace megalith
