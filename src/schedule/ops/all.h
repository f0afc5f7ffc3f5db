// The constants of all op families, for passes and readers that use several.
#pragma once
#include "schedule/ops/compute.h"
#include "schedule/ops/device.h"
#include "schedule/ops/pipeline.h"
#include "schedule/ops/ranks.h"
#include "schedule/ops/residency.h"
#include "schedule/ops/save.h"
