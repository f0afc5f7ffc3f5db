#include "config/unavailable.h"

#include "base/error.h"

namespace megalith {

void refuse_unavailable(const Config& config, const WhereOf& where) {
  auto refuse = [&](bool wanted, std::string_view key, std::string_view expected, const std::string& got) {
    if (wanted)
      throw UserError({where ? where(key) : "", std::string(key), std::string(expected), got,
                       "this version does not have it yet"});
  };
  auto more_than = [&](int64_t value, int64_t most, std::string_view key) {
    refuse(value > most, key, fmt::format("{}", most), fmt::format("{}", value));
  };
  more_than(config.parallel.data, 1, "parallel.data");
  more_than(config.parallel.tensor, 1, "parallel.tensor");
  more_than(config.parallel.pipeline, 1, "parallel.pipeline");
  more_than(config.parallel.context, 1, "parallel.context");
  more_than(config.parallel.expert, 1, "parallel.expert");
  more_than(config.parallel.zero, 0, "parallel.zero");
}

}  // namespace megalith
