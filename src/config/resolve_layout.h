// Computes the layout of a run from its settings, and checks that it divides batch, heads, widths and blocks.
#pragma once
#include <string_view>

#include "config/config.h"

namespace megalith {

// Returns the layout that the settings describe. `parallel.data: auto` counts as 1.
Layout layout_of(const Config& config);

// Returns the layout of a run of `ranks` ranks; computes `parallel.data` if it is auto. Throws UserError with the
// possible layouts if the product of the axes is not `ranks`. Throws UserError that names the key if the layout cannot
// divide something. `from` says in messages what gives the number of ranks.
Layout resolve_layout(const Config& config, int ranks, std::string_view from = "--ranks");

// Checks that need the complete shape of the model: the axes divide heads, widths and the number of blocks.
void check_model_layout(const ModelShape& shape, const Layout& layout);

}  // namespace megalith
