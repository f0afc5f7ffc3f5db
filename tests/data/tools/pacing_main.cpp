// For comparisons with DeepSpeed.
//   pacing_main pacing RUN.yaml STEPS       prints the limits of all curriculum entries and of token dropping, one JSON
// list per step
//   pacing_main values FILE SAMPLES         the numbers of a metric file, as JSON
//   pacing_main index  FOLDER NAME < JSON   writes a list of numbers as DeepSpeed's index files
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "config/parse.h"
#include "data/deepspeed_index.h"
#include "data/metric_file.h"
#include "data/step_shapes.h"

using namespace megalith;

int main(int argc, char** argv) {
  const std::string what = argc > 3 ? argv[1] : "";
  if (what == "values") {
    std::puts(print_json(nlohmann::json(read_metric(argv[2], {"", std::atoll(argv[3]), ""}))).c_str());
  } else if (what == "index") {
    write_deepspeed_index(argv[2], argv[3], nlohmann::json::parse(std::cin).get<std::vector<double>>());
  } else if (what == "pacing") {
    const Config config = load_config(argv[2], {});
    const StepShapes shapes(config, config.model.shape.layers);
    for (int64_t step = 0; step < std::atoll(argv[3]); step++) {
      nlohmann::json limits = nlohmann::json::array();
      auto add = [&](const PacingSettings& pacing) {
        limits.push_back(Pacing(pacing).at(shapes.before(step, pacing.unit)));
      };
      for (const CurriculumSettings& entry : config.curriculum) add(entry.pacing);
      if (config.token_dropping.on()) add(config.token_dropping.pacing);
      std::puts(print_json(limits).c_str());
    }
  } else {
    return 2;
  }
}
