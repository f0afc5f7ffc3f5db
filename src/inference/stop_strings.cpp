#include "inference/stop_strings.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace megalith {

std::string StopStrings::feed(const std::string& piece) {
  if (stopped_) return "";
  held_ += piece;
  size_t cut = std::string::npos;
  for (const std::string& stop : stops_) cut = std::min(cut, held_.find(stop));
  if (cut != std::string::npos) {
    stopped_ = true;
    held_.resize(cut);
    return std::exchange(held_, "");
  }
  // Hold back the longest end of the text that could be the beginning of a stop string.
  size_t keep = 0;
  for (const std::string& stop : stops_)
    for (size_t n = std::min(stop.size() - 1, held_.size()); n > keep; n--)
      if (std::string_view(held_).ends_with(std::string_view(stop).substr(0, n))) keep = n;
  std::string out = held_.substr(0, held_.size() - keep);
  held_.erase(0, out.size());
  return out;
}

std::string StopStrings::finish() { return stopped_ ? "" : std::exchange(held_, ""); }

}  // namespace megalith
