// The difficulty of every training sample: computed once, kept in the run directory.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "config/config.h"
#include "data/dataset.h"
#include "report/analysis_page.h"
#include "train/run_directory.h"

namespace megalith {

struct AnalysisRequest {
  std::string metric;      // one of token_metrics(), or loss; any name with `file`
  std::string checkpoint;  // loss: the model whose loss it is
  std::string file;        // the user's own values; empty: they are computed
};

// UserError, as of `key`, where no such metric can be had: told before text is made into tokens, which may take long.
void check_request(const AnalysisRequest& request, const std::string& key, const std::filesystem::path& run_dir);

struct MetricValues {
  std::filesystem::path path;
  std::vector<double> values;  // one a training sample
};

// A metric's values, computed first unless they are there for exactly these data and this model. A run that `goes_on`
// keeps those that it began with, whatever has become of the model. Shows progress; an interruption keeps what is done and
// throws Interrupted.
MetricValues metric_of(const AnalysisRequest& request, const Config& config, const RunDirectory& run, const Dataset& data,
                       bool goes_on = false);

struct AnalysisOptions {
  std::vector<std::string> metrics;  // empty: those that the curriculum filters by, or else all of tokens
  std::string checkpoint;            // loss; empty: as the curriculum says
  std::string deepspeed;             // folder for DeepSpeed's index files; empty: none
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
