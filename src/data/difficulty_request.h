// Which difficulty of samples is meant: by a curriculum's entry, or by `megalith analyze`.
#pragma once
#include <string>
#include <string_view>

#include "config/config.h"

namespace megalith {

inline constexpr std::string_view kLossMetric = "loss";

struct DifficultyRequest {
  std::string metric;      // one of token_metrics(), or loss; any name with `file`
  std::string checkpoint;  // loss: the model whose loss it is
  std::string file;        // the user's own values; empty: they are computed
  std::string kept = {};   // loss: a file of ours to go by, whatever has become of the checkpoint; empty: as it is now
  bool of_model() const { return file.empty() && metric == kLossMetric; }
  bool operator==(const DifficultyRequest&) const = default;
};

DifficultyRequest request_of(const CurriculumSettings& entry);

// UserError, as of `key`, where no such metric can be had: told before text is made into tokens, which may take long.
void check_request(const DifficultyRequest& request, const std::string& key);

}  // namespace megalith
