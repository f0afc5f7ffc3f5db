// Cuts streamed text before the first stop string.
#pragma once
#include <string>
#include <vector>

namespace megalith {

class StopStrings {
 public:
  explicit StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // Takes more text. Returns the text that can no longer be part of a stop string.
  std::string feed(const std::string& piece);
  std::string finish();  // call it at the end of the text; returns what was held back
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;  // none of them empty
  std::string held_;
  bool stopped_ = false;
};

}  // namespace megalith
