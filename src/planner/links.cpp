#include "planner/links.h"

#include <fmt/format.h>

#include "planner/measurements.h"

namespace megalith {
namespace {

// Calls each(name, number) for every number of the links that a layout uses.
template <class Each>
void for_each_number(const LinkPlace& place, Links& links, const Each& each) {
  const Layout& l = place.layout;
  const bool used[] = {l.tensor > 1, l.context > 1, l.data * l.context > 1, l.pipeline > 1, l.expert > 1};
  static_assert(std::size(used) == kAxes);
  for (size_t i = 0; i < kAxes; i++) {
    if (!used[i]) continue;
    const auto axis = static_cast<Axis>(i);
    const std::string where =
        fmt::format("{}{}{}{}", show(l), axis == Axis::context && l.context_form == ContextForm::ulysses ? ", ulysses" : "",
                    place.hosts.empty() ? "" : ", on ", place.hosts);
    each(fmt::format("link {} wait, {}", name_of(axis), where), links[i].latency_s);
    each(fmt::format("link {} rate, {}", name_of(axis), where), links[i].bytes_per_s);
  }
}

}  // namespace

std::optional<Links> known_links(const LinkPlace& place, int64_t threads, bool fresh) {
  const Measurements known(threads, /*may_measure=*/fresh);
  Links links{};
  bool all = true;
  for_each_number(place, links, [&](const std::string& name, double& number) {
    const auto found = known.find(name);
    all = all && found;
    number = found.value_or(0);
  });
  return all ? std::optional(links) : std::nullopt;
}

Links measured_links(const LinkPlace& place, int64_t threads, const std::function<Links()>& try_links) {
  Measurements known(threads, /*may_measure=*/true);
  Links links{};
  known.watch([&] { links = try_links(); });
  for_each_number(place, links, [&](const std::string& name, double& number) { known.set(name, number); });
  known.save();
  return links;
}

Links typical_links() { return on_every_axis({.latency_s = 5e-6, .bytes_per_s = 5e9}); }

}  // namespace megalith
