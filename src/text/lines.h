// Iterates over the lines of a text file, which end with \n or \r\n.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string_view>

namespace megalith {

// Calls run(line, number) for each line. `line` has no line end; the first line has number 1.
template <class Run>
void for_each_line(std::string_view text, const Run& run) {
  int64_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    run(line, ++number);
  }
}

}  // namespace megalith
