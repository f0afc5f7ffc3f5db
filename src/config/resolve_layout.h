// The layout of a run's ranks, from its settings, checked against everything that it must divide.
#pragma once
#include "config/config.h"

namespace megalith {

// The layout that the settings describe. `parallel.data: auto` counts as 1.
Layout layout_of(const Config& config);

// The layout of a run of `ranks` ranks: fills in `parallel.data: auto`. Throws a UserError that lists the possible layouts
// if the axes do not multiply to `ranks`, and one that names the key for anything that the layout cannot divide.
Layout resolve_layout(const Config& config, int ranks);

// Checks what needs the complete shape of the model: heads, widths and the number of blocks that the axes divide.
void check_model_layout(const ModelShape& shape, const Layout& layout);

}  // namespace megalith
