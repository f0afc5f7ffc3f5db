// A model with experts from a dense one: every expert begins as the dense feed-forward layer, so that the new model
// computes what the old one did, until training tells its experts apart.
#pragma once
#include <filesystem>
#include <optional>

#include "base/dtype.h"

namespace megalith {

struct Upcycling {
  int64_t experts = 0;
  int64_t top_k = 2;
};

// As export_model, with experts.
void upcycle_model(const std::filesystem::path& from, const std::filesystem::path& out, std::optional<DType> dtype,
                   const Upcycling& upcycling);

}  // namespace megalith
