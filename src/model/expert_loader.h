// Loads the experts that a layer needs. A layer knows which experts it needs only after its router has run.
#pragma once
#include <cstdint>
#include <span>

namespace megalith {

class ExpertLoader {
 public:
  virtual ~ExpertLoader() = default;
  // Called before a layer computes with its experts, in forward and backward of every micro-batch. Rows are sorted by the
  // experts that this rank owns: those of expert e are [begin[e], begin[e + 1]). Experts without rows are not loaded.
  virtual void load_experts(int64_t layer, std::span<const int64_t> begin) = 0;
};

}  // namespace megalith
