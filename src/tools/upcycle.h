// Makes a model with experts from a dense model. Every expert begins as a copy of the dense feed-forward layer. So the new
// model computes the same as the old one until training makes its experts different.
#pragma once
#include <filesystem>
#include <optional>

#include "base/dtype.h"

namespace megalith {

struct Upcycling {
  int64_t experts = 0;
  int64_t top_k = 2;
};

// Like export_model, but the exported model has experts.
void upcycle_model(const std::filesystem::path& from, const std::filesystem::path& out, std::optional<DType> dtype,
                   const Upcycling& upcycling);

}  // namespace megalith
