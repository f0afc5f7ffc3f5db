#include "families/block_spec.h"

#include <functional>
#include <numeric>

#include "base/error.h"
#include "families/family.h"
#include "families/layout_check.h"

namespace megalith {
namespace {

void lay_out(BlockSpec& block, const Mesh& mesh) {
  int64_t end = 0;
  const auto align = [&](int64_t to) { end = (end + to - 1) / to * to; };
  block.segments = {{}};
  for (ParameterSpec& parameter : block.parameters) {
    if (!parameter.joins_previous) align(kFlatAlign);
    if (parameter.begins_expert && parameter.size() > 0) {
      const int64_t expert = block.segments.back().expert + 1;
      block.segments.back().range.end = end;
      align(kPartAlign);
      block.segments.push_back({{end, end}, mesh.size(Axis::expert) > 1, expert});
    }
    parameter.offset = end;
    end += parameter.size();
  }
  align(kFlatAlign);
  block.flat_size = block.segments.back().range.end = end;
}

}  // namespace

std::vector<Segment> by_ranks(const std::vector<Segment>& parts) {
  std::vector<Segment> joined;
  for (const Segment& part : parts) {
    if (joined.empty() || joined.back().spread != part.spread) joined.push_back(part);
    else joined.back() = {{joined.back().range.begin, part.range.end}, part.spread};
  }
  return joined;
}

int64_t ParameterSpec::size() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}
int64_t ParameterSpec::whole_size() const {
  return std::accumulate(whole_shape.begin(), whole_shape.end(), int64_t{1}, std::multiplies<>());
}

int64_t BlockSpec::wide_before(int64_t flat) const {
  int64_t sum = 0;
  for (const ParameterSpec& p : parameters)
    if (p.wide) sum += std::clamp<int64_t>(flat - p.offset, 0, p.size());
  return sum;
}

const ParameterSpec* BlockSpec::find(const std::string& suffix) const {
  for (const ParameterSpec& p : parameters)
    if (p.name.ends_with(suffix)) return &p;
  return nullptr;
}

const ParameterSpec& BlockSpec::parameter(const std::string& suffix) const {
  const ParameterSpec* found = find(suffix);
  MEGALITH_ASSERT(found, "{} has no parameter {}", name, suffix);
  return *found;
}

std::vector<BlockSpec> list_blocks(const ModelShape& shape, const Mesh& mesh) {
  check_layout(shape, mesh.layout());
  std::vector<BlockSpec> blocks = shape.family->parameters(shape, mesh);
  int64_t number = 0;
  for (BlockSpec& b : blocks) {
    lay_out(b, mesh);
    for (ParameterSpec& parameter : b.parameters) parameter.number = number++;
  }
  return blocks;
}

int64_t computing_elements(const BlockSpec& spec, int64_t element_bytes) {
  constexpr int64_t kHalves = 2;  // 16-bit elements in a float32
  return spec.flat_size + (element_bytes == 2 ? kHalves * spec.wide_before(spec.flat_size) : 0);
}

int64_t parameter_count(const ModelShape& shape) {
  MEGALITH_ASSERT(shape.heads > 0, "a shape without heads has no parameters to count");
  int64_t sum = 0;
  for (const BlockSpec& block : list_blocks(shape))
    for (const ParameterSpec& parameter : block.parameters) sum += parameter.size();
  return sum;
}

}  // namespace megalith
