// The layout of a run's ranks, completed and checked against everything that it must divide.
#pragma once
#include "layout/mesh.h"
#include "config/config.h"

namespace megalith {

// Fills in parallel.data where it is auto. UserError, with the layouts that there are, where the axes do not make
// `ranks`; and by name for what a layout cannot divide.
Layout resolve_layout(Config& config, int ranks);

// What needs the shape of the model: heads, widths and blocks that the axes divide.
void check_layout(const Config& config, const Layout& layout);

}  // namespace megalith
