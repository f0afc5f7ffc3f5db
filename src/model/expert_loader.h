// Loads the experts that a layer needs. A layer knows which ones only when its router has run.
#pragma once
#include <cstdint>
#include <span>

namespace megalith {

class ExpertLoader {
 public:
  virtual ~ExpertLoader() = default;
  // Before a layer computes with its experts, forward or back, of every micro-batch. `begin`: of its rows sorted by expert
  // that is here, and the end; an expert without rows is not needed.
  virtual void load_experts(int64_t layer, std::span<const int64_t> begin) = 0;
};

}  // namespace megalith
