#include "data/difficulty_request.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/hub_name.h"
#include "base/nearest.h"
#include "base/similar_file.h"
#include "data/deepspeed_index.h"
#include "data/sample_metrics.h"

namespace megalith {

DifficultyRequest request_of(const CurriculumSettings& entry) { return {entry.metric, entry.checkpoint, entry.file}; }

void check_request(const DifficultyRequest& request, const std::string& key) {
  if (request.metric.find('/') != std::string::npos)
    throw UserError({"", key, "a metric name without / (file names contain it)", request.metric, "remove the /"});
  if (!request.file.empty()) {
    if (!std::filesystem::exists(request.file) && !is_deepspeed_index(request.file))
      throw UserError({"", key + ".file", "a file", request.file + ": no such file", where_it_may_be(request.file)});
    return;
  }
  std::vector<std::string_view> names(token_metrics().begin(), token_metrics().end());
  names.push_back(kLossMetric);
  if (std::ranges::find(names, request.metric) == names.end()) {
    const std::string_view near = nearest(request.metric, names);
    throw UserError({"", key, fmt::format("one of {}, or any name together with file:", fmt::join(names, ", ")),
                     request.metric,
                     near.empty() ? "set file: to use your own values" : fmt::format("did you mean {}?", near)});
  }
  if (!request.of_model() || !request.kept.empty()) return;
  if (request.checkpoint.empty())
    throw UserError({"", key, "a checkpoint that computes the loss", "none",
                     "set --checkpoint, or checkpoint: in curriculum"});
  if (!std::filesystem::exists(request.checkpoint))
    throw UserError({"", key + ".checkpoint", "a folder with a model", request.checkpoint + ": no such folder",
                     where_to_get(request.checkpoint)});
}

}  // namespace megalith
