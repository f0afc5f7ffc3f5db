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
  if (config.memory.device && config.memory.device_bandwidth == 0)
    throw UserError({where ? where("memory.device") : "", "memory.device", "memory.simulated_device.bandwidth beside it",
                     show(*config.memory.device),
                     "no GPU build of LibTorch was found: blocks are computed by this machine's cores; "
                     "memory.simulated_device.bandwidth=8GB simulates a device"});
}

}  // namespace megalith
