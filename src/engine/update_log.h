// Updates that some spilled segments have not applied yet, by number, oldest first. An expert that no token chooses
// collects pending updates and applies all of them when it is needed again. Residency::is_due loads it after too many
// updates, so the log stays short.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "optim/optimizer.h"

namespace megalith {

class UpdateLog {
 public:
  int64_t end() const { return first_ + std::ssize(updates_); }  // the number of the next update
  void add(const Update& update) { updates_.push_back(update); }
  std::span<const Update> from(int64_t number) const {
    return std::span(updates_).subspan(static_cast<size_t>(number - first_));
  }
  void forget_before(int64_t number) {
    updates_.erase(updates_.begin(), updates_.begin() + (number - first_));
    first_ = number;
  }

 private:
  int64_t first_ = 0;  // number of the oldest update in updates_
  std::vector<Update> updates_;
};

}  // namespace megalith
