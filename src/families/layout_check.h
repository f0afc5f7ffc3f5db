// Checks that a layout can divide a model over its ranks.
#pragma once
#include "families/shape_check.h"
#include "layout/layout.h"

namespace megalith {

// Throws UserError if the layout does not divide the heads, widths or experts. The message lists what is possible.
void check_layout(const ModelShape& shape, const Layout& layout, const WhereOf& where = {});

}  // namespace megalith
