// Whether a model can be divided over ranks as a split says.
#pragma once
#include "families/shape_check.h"
#include "layout/split.h"

namespace megalith {

// Refuses a split that heads or widths do not allow, with what they do allow.
void check_split(const ModelShape& shape, const Split& split, const WhereOf& where = {});

}  // namespace megalith
