// Implements `megalith analyze`: computes the difficulties of all training samples and shows them.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "config/config.h"
#include "report/analysis_page.h"

namespace megalith {

struct AnalysisOptions {
  std::vector<std::string> metrics;  // empty: the metrics that the curriculum filters by, or all token metrics
  std::string checkpoint;            // model of the metric loss; empty: the one that the curriculum names
  std::string deepspeed;             // folder for DeepSpeed's index files; empty: do not write them
  int64_t examples = 5;
};

struct Analysis {
  std::vector<MetricSummary> summaries;  // a second metric of the same name is NAME_2
  std::vector<std::filesystem::path> files;
  std::filesystem::path page;
};

Analysis analyze(const Config& config, const AnalysisOptions& options);

}  // namespace megalith
