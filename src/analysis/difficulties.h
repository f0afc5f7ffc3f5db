// The difficulty of every training sample by a metric. It is computed once and stored in the run directory.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"
#include "data/difficulty_request.h"
#include "data/metric_file.h"
#include "run/run.h"

namespace megalith {

struct MetricValues {
  std::filesystem::path path;
  std::vector<double> values;  // one per training sample
};

class Difficulties {
 public:
  // Borrows all arguments.
  Difficulties(const Run& run, const RunDirectory& directory, const Dataset& data);

  // Returns a metric's values. Computes them first unless they are stored for exactly these data and this model. Shows
  // progress. An interruption keeps the values computed so far and throws Interrupted.
  MetricValues of(const DifficultyRequest& request);
  // True if the values of a token metric are stored already.
  bool known(std::string_view metric) const;

 private:
  MetricSubject subject_of(std::string_view metric) const;
  std::filesystem::path path_of(const MetricSubject& subject) const;
  void compute(const DifficultyRequest& request, const std::filesystem::path& path, const MetricSubject& subject);

  const Run& run_;
  const RunDirectory& directory_;
  const Dataset& data_;
  int64_t threads_;
  std::string fingerprint_;                          // fingerprint of the data
  std::optional<std::vector<double>> token_costs_;  // counted when a metric first needs them
};

}  // namespace megalith
