// Where a layer's experts are taken from. Which ones a layer needs it knows only when its router has run; those that are
// not in memory then are brought in.
#pragma once
#include <cstdint>
#include <span>

namespace megalith {

class ExpertShelf {
 public:
  virtual ~ExpertShelf() = default;
  // Before a layer computes with its experts, forward or back, of every micro-batch. `begin`: of its rows sorted by expert
  // that is here, and the end; an expert without rows is not needed.
  virtual void need(int64_t layer, std::span<const int64_t> begin) = 0;
};

}  // namespace megalith
