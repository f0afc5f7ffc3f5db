#include "config/split.h"

#include <fmt/ranges.h>

#include <numeric>

#include "base/error.h"

namespace megalith {
namespace {

std::string divisors(int64_t number) {
  std::vector<int64_t> all;
  for (int64_t d = 1; d <= number; d++)
    if (number % d == 0) all.push_back(d);
  if (all.size() == 1) return "use 1";
  return fmt::format("use {} or {}", fmt::join(all.begin(), all.end() - 1, ", "), all.back());
}

}  // namespace

std::vector<int64_t> cut_points(int64_t n, int64_t ranks) {
  std::vector<int64_t> points;
  for (int64_t r = 0; r <= ranks; r++) points.push_back(cut_point(n, ranks, r));
  return points;
}

std::vector<PositionRun> context_runs(int64_t length, int64_t ranks, int64_t rank) {
  if (ranks == 1) return {{0, length}};
  auto chunk = [&](int64_t c) {
    return PositionRun{cut_point(length, 2 * ranks, c), cut_point(length, 2 * ranks, c + 1)};
  };
  return {chunk(rank), chunk(2 * ranks - 1 - rank)};
}

std::vector<int64_t> context_positions(int64_t length, int64_t ranks, int64_t rank) {
  std::vector<int64_t> positions;
  for (const PositionRun& run : context_runs(length, ranks, rank))
    for (int64_t t = run.begin; t < run.end; t++) positions.push_back(t);
  return positions;
}

int64_t context_length(int64_t length, int64_t ranks, int64_t rank) {
  int64_t sum = 0;
  for (const PositionRun& run : context_runs(length, ranks, rank)) sum += run.size();
  return sum;
}

bool divides_parameters(const ParallelSettings& layout) {
  const bool slices = layout.zero > 0 && layout.data * layout.context > 1;
  return slices || layout.tensor > 1 || layout.expert > 1;
}

void check_split(const ModelShape& shape, const Split& split, const WhereOf& where) {
  struct Divided {
    const char* key;
    int64_t number;
  };
  auto require = [&](const char* key, int64_t ranks, std::initializer_list<Divided> all, const std::string& of) {
    int64_t common = 0;
    for (const Divided& d : all) common = std::gcd(common, d.number);
    for (const Divided& d : all)
      if (d.number % ranks != 0)
        throw UserError({where ? where(key) : "", key, fmt::format("a divisor of {}{} ({})", d.key, of, d.number),
                         fmt::format("{}", ranks), divisors(common)});
  };
  if (split.expert > 1 && !shape.experts.any())
    throw UserError({where ? where("parallel.expert") : "", "parallel.expert", "1, as the model has no experts",
                     fmt::format("{}", split.expert), "remove it, or set model.experts.count"});
  if (split.expert > 1) require("parallel.expert", split.expert, {{"model.experts.count", shape.experts.count}}, "");
  const int64_t t = split.tensor;
  require("parallel.tensor", t,
          {{"model.heads", shape.heads}, {"model.kv_heads", shape.kv_heads}, {"model.ffn", shape.ffn}}, "");
  if (shape.experts.any()) require("parallel.tensor", t, {{"model.experts.ffn", shape.experts.ffn}}, "");
  if (shape.experts.shared > 0) require("parallel.tensor", t, {{"model.experts.shared", shape.experts.shared}}, "");
  if (shape.vocab > 0 && t > shape.vocab)
    throw UserError({where ? where("parallel.tensor") : "", "parallel.tensor",
                     fmt::format("at most model.vocab ({})", shape.vocab), fmt::format("{}", t), ""});
  if (split.form != ContextForm::ulysses) return;
  require("parallel.context", split.context, {{"model.heads", shape.heads / t}, {"model.kv_heads", shape.kv_heads / t}},
          t > 1 ? " / parallel.tensor" : "");
}

}  // namespace megalith
