// Checks that look at more than one setting. Messages name both.
#pragma once
#include "config/config.h"
#include "families/shape_check.h"

namespace megalith {

// Checks that do not depend on the model: min_lr <= lr, warmup <= steps, micro_batch divides batch, every setting that
// is not at its default has an effect.
void check_settings(const Config& config, const WhereOf& where = {});

// Checks that need the shape: heads divide hidden, sequence <= context, objective fits architecture, ... parse_config()
// calls this if it knows the shape. prepare_run() calls it with the complete shape.
void check_model(const Config& config, const ModelShape& shape, const WhereOf& where = {});

// Checks that only training needs: data.train is set. Does not check that the files exist and are readable.
void check_for_training(const Config& config, const WhereOf& where = {});

}  // namespace megalith
