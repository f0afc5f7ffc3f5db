// libFuzzer entry: any bytes give a Config or a UserError. The first line, up to a newline, is an override,
// the rest the file. What parses must also survive its own round trip.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "config/parse.h"
#include "config/resolved.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  size_t end = input.find('\n');
  std::string override_text(input.substr(0, end));
  std::string_view yaml = end == std::string_view::npos ? "" : input.substr(end + 1);
  std::string overrides[] = {override_text};
  megalith::Config config;
  try {
    config = megalith::parse_config(yaml, "fuzz.yaml", "fuzz",
                                    std::span<const std::string>(overrides, override_text.empty() ? 0 : 1));
  } catch (const megalith::UserError&) {
    return 0;
  }
  if (!(megalith::parse_config(megalith::to_yaml(config), "again.yaml", "fuzz") == config)) std::abort();
  return 0;
}
