// Whether a model can be divided over ranks as a layout says.
#pragma once
#include "families/shape_check.h"
#include "layout/layout.h"

namespace megalith {

// Refuses a layout that the numbers of heads, widths or experts do not allow, and says what they allow.
void check_layout(const ModelShape& shape, const Layout& layout, const WhereOf& where = {});

}  // namespace megalith
