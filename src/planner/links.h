// Speeds of the exchanges between the ranks of a run: tried when the ranks first meet, then kept with the other measurements
// of the machine.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "layout/layout.h"
#include "schedule/cost_model.h"

namespace megalith {

// What the speeds depend on.
struct LinkPlace {
  Layout layout;
  std::string hosts;  // the host of every rank; empty: all are on one
};

// Of the axes that the layout has; empty when one of them was not measured. `fresh`: nor may it have been measured on a busy
// machine a while ago.
std::optional<Links> known_links(const LinkPlace& place, int64_t threads, bool fresh = false);
// Runs `try_links` and keeps what it finds.
Links measured_links(const LinkPlace& place, int64_t threads, const std::function<Links()>& try_links);
// Of ranks on one ordinary host.
Links typical_links();

}  // namespace megalith
