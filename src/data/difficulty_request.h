// A request for a difficulty of samples, from a curriculum's entry or from `megalith analyze`.
#pragma once
#include <string>
#include <string_view>

#include "config/config.h"

namespace megalith {

inline constexpr std::string_view kLossMetric = "loss";

struct DifficultyRequest {
  std::string metric;      // one of token_metrics(), or loss; any name with `file`
  std::string checkpoint;  // loss: the model that computes the loss
  std::string file;        // the user's own values; empty: compute the values
  std::string kept = {};   // loss: our file to use, even if the checkpoint has changed since; empty: use the checkpoint
  bool of_model() const { return file.empty() && metric == kLossMetric; }
  bool operator==(const DifficultyRequest&) const = default;
};

DifficultyRequest request_of(const CurriculumSettings& entry);

// Throws UserError for `key` if there is no such metric. Called before tokenization, which may take long.
void check_request(const DifficultyRequest& request, const std::string& key);

}  // namespace megalith
