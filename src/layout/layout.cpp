#include "layout/layout.h"

#include <fmt/core.h>

namespace megalith {

const char* name_of(Axis axis) {
  switch (axis) {
    case Axis::tensor: return "tensor";
    case Axis::context: return "context";
    case Axis::data: return "data";
    case Axis::pipeline: return "pipeline";
    case Axis::expert: return "expert";
  }
  return "";
}

int32_t Layout::along(Axis axis) const {
  switch (axis) {
    case Axis::tensor: return tensor;
    case Axis::context: return context;
    case Axis::data: return data;
    case Axis::pipeline: return pipeline;
    case Axis::expert: return expert;
  }
  return 1;
}

std::string show(const Layout& layout) {
  std::string text;
  for (Axis axis : {Axis::data, Axis::pipeline, Axis::context, Axis::tensor}) {
    if (layout.along(axis) == 1) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : " × ", name_of(axis), layout.along(axis));
  }
  if (layout.expert > 1) text += fmt::format(", experts over {}", layout.expert);
  return text.empty() ? "1 rank" : text;
}

std::vector<Layout> layouts_of(int32_t ranks) {
  std::vector<Layout> layouts;
  for (int32_t data = ranks; data >= 1; data--) {
    if (ranks % data != 0) continue;
    const int32_t without_data = ranks / data;
    for (int32_t pipeline = 1; pipeline <= without_data; pipeline++) {
      if (without_data % pipeline != 0) continue;
      const int32_t inner = without_data / pipeline;
      for (int32_t context = 1; context <= inner; context++) {
        if (inner % context == 0) layouts.push_back({data, pipeline, context, inner / context});
      }
    }
  }
  return layouts;
}

}  // namespace megalith
