// What `megalith analyze` does: difficulties of all training samples, and what they look like.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "config/config.h"
#include "report/analysis_page.h"

namespace megalith {

struct AnalysisOptions {
  std::vector<std::string> metrics;  // empty: those that the curriculum filters by, or else all of tokens
  std::string checkpoint;            // loss; empty: as the curriculum says
  std::string deepspeed;             // folder for DeepSpeed's index files; empty: none
  int64_t examples = 5;
};

struct Analysis {
  std::vector<MetricSummary> summaries;  // a second metric of the same name is NAME_2
  std::vector<std::filesystem::path> files;
  std::filesystem::path page;
};

Analysis analyze(const Config& config, const AnalysisOptions& options);

}  // namespace megalith
