// A run before anything is done for it: all that follows from settings, from headers of files and from this machine.
#pragma once
#include <memory>
#include <optional>

#include "base/units.h"
#include "run/run.h"

namespace megalith {

struct Foreseen {
  std::unique_ptr<TokenizerSource> tokenizer;  // stays loaded, as in training: the process's figure counts it
  Run run;
  PlanInput input;  // with the process's figure
};

// What train knows and the commands that only predict do not.
struct ForeseenBy {
  int32_t host_ranks = 1;            // that share this host
  std::optional<Found> resume = {};  // the run's newest checkpoint
  Bytes transport = Bytes(0);        // measured, of this process
};

// Rank 0's view of a run. UserError for mistakes in settings, layout and model. A tokenizer that is not trained yet has
// data.tokenizer.vocab tokens, the most that it can get. Leaves no files. Sets the threads that compute.
Foreseen foresee(const Config& config, const Layout& layout, const ForeseenBy& by);

// UserError for mistakes that files show without reading text: data that is not there, tensors of model.from that are
// missing or have other shapes.
void check_files(const Foreseen& foreseen);

}  // namespace megalith
