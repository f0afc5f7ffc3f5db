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
  more_than(config.parallel.expert, 1, "parallel.expert");
}

}  // namespace megalith
