// The one table of families. A family is a folder families/NAME and its name here.
#pragma once

#define MEGALITH_FAMILIES(F) F(gpt2) F(llama) F(bert)

namespace megalith {

struct Family;
// gpt2_family, llama_family, ...: defined by each folder's shape.cpp.
#define MEGALITH_DECLARE_FAMILY(name) extern const Family name##_family;
MEGALITH_FAMILIES(MEGALITH_DECLARE_FAMILY)
#undef MEGALITH_DECLARE_FAMILY

}  // namespace megalith
