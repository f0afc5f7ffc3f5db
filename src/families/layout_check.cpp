#include "families/layout_check.h"

#include <fmt/format.h>

#include <numeric>

#include "base/error.h"
#include "families/shape_check.h"

namespace megalith {

void check_layout(const ModelShape& shape, const Layout& layout, const WhereOf& where) {
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
                         fmt::format("{}", ranks), nearby_divisors(common, ranks)});
  };
  if (layout.expert > 1 && !shape.experts.any())
    throw UserError({where ? where("parallel.expert") : "", "parallel.expert", "1, because the model has no experts",
                     fmt::format("{}", layout.expert), "remove it, or set model.experts.count"});
  if (layout.expert > 1) require("parallel.expert", layout.expert, {{"model.experts.count", shape.experts.count}}, "");
  const int64_t t = layout.tensor;
  require("parallel.tensor", t,
          {{"model.heads", shape.heads}, {"model.kv_heads", shape.kv_heads}, {"model.ffn", shape.ffn}}, "");
  if (shape.experts.any()) require("parallel.tensor", t, {{"model.experts.ffn", shape.experts.ffn}}, "");
  if (shape.experts.shared > 0) require("parallel.tensor", t, {{"model.experts.shared", shape.experts.shared}}, "");
  if (shape.vocab > 0 && t > shape.vocab)
    throw UserError({where ? where("parallel.tensor") : "", "parallel.tensor",
                     fmt::format("at most model.vocab ({})", shape.vocab), fmt::format("{}", t), ""});
  if (layout.context_form != ContextForm::ulysses) return;
  require("parallel.context", layout.context, {{"model.heads", shape.heads / t}, {"model.kv_heads", shape.kv_heads / t}},
          t > 1 ? " / parallel.tensor" : "");
}

}  // namespace megalith
