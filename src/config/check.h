// Checks that look at more than one setting. Messages name both.
#pragma once
#include "config/config.h"
#include "families/shape_check.h"

namespace megalith {

// What holds whatever the model is: min_lr <= lr, warmup <= steps, micro_batch divides batch, no setting that
// another one makes meaningless.
void check_settings(const Config& config, const WhereOf& where = {});

// What needs the shape: heads divide hidden, sequence <= context, objective fits architecture, ...
// parse_config() calls it where the shape is known; prepare_run() for the shape that is complete.
void check_model(const Config& config, const ModelShape& shape, const WhereOf& where = {});

// What only training needs: data.train. Whether the files are there and readable is for whoever opens them.
void check_for_training(const Config& config, const WhereOf& where = {});

}  // namespace megalith
