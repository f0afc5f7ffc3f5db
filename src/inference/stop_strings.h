// Text up to the first of some stop strings, as it streams in.
#pragma once
#include <string>
#include <vector>

namespace megalith {

class StopStrings {
 public:
  explicit StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // Takes more text, gives back what can no longer be part of a stop string.
  std::string feed(const std::string& piece);
  std::string finish();  // the text ended: what was still held back
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;  // none of them empty
  std::string held_;
  bool stopped_ = false;
};

}  // namespace megalith
