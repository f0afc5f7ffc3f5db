// The difficulty of every training sample: computed once, kept in the run directory.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "config/config.h"
#include "data/dataset.h"
#include "report/analysis_page.h"
#include "text/tokenizer.h"
#include "train/run_directory.h"

namespace megalith {

struct AnalysisRequest {
  std::string metric;      // one of token_metrics(), or loss
  std::string checkpoint;  // loss: the model whose loss it is
};

// Where a metric's values are, computing them first unless they are there for exactly these data. Shows progress; an
// interruption keeps what is done and throws Interrupted. UserError for an unknown metric.
std::filesystem::path metric_values(const AnalysisRequest& request, const Config& config, const RunDirectory& run,
                                    const Dataset& data);

// The values themselves.
std::vector<double> metric_of(const AnalysisRequest& request, const Config& config, const RunDirectory& run,
                              const Dataset& data);

struct AnalysisOptions {
  std::vector<AnalysisRequest> metrics;  // empty: those that the curriculum filters by, or else all of tokens
  std::string deepspeed;                 // folder for DeepSpeed's index files; empty: none
  int64_t examples = 5;
};

struct Analysis {
  std::vector<MetricSummary> summaries;
  std::vector<std::filesystem::path> files;
  std::filesystem::path page;
};

// What the command does.
Analysis analyze(Config config, const AnalysisOptions& options);

}  // namespace megalith
