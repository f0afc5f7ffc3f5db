// Speeds of exchanges between the ranks of a run. They are measured when the ranks first run together, and then kept with
// the other measurements of the machine.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "layout/layout.h"
#include "schedule/cost_model.h"

namespace megalith {

// The speeds depend on these.
struct LinkPlace {
  Layout layout;
  std::string hosts;  // the host of every rank; empty: all are on one
};

// Returns the speeds of the axes that the layout uses, or nothing if one was not measured. `fresh`: ignore old measurements
// of a busy machine.
std::optional<Links> known_links(const LinkPlace& place, int64_t threads, bool fresh = false);
// Runs `try_links` and keeps the speeds that it returns.
Links measured_links(const LinkPlace& place, int64_t threads, const std::function<Links()>& try_links);
// Returns speeds between ranks on one ordinary host.
Links typical_links();

}  // namespace megalith
