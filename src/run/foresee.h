// A run before anything is done for it: all that follows from settings, from headers of files and from this machine.
#pragma once
#include <memory>
#include <optional>

#include "base/units.h"
#include "run/run.h"

namespace megalith {

struct Foreseen {
  std::unique_ptr<TokenizerSource> tokenizer;  // stays loaded, as in training: `input.process` counts it
  Run run;
  PlanInput input;  // includes the memory of the process itself
};

// Values that `train` knows. Commands that only predict use the defaults.
struct ForeseenBy {
  int32_t host_ranks = 1;            // ranks that share this host
  std::optional<Found> resume = {};  // the run's newest checkpoint
  Bytes transport = Bytes(0);        // measured, of this process
};

// Returns rank 0's view of a run. Throws UserError for mistakes in settings, layout and model. A tokenizer that is not
// trained yet counts with data.tokenizer.vocab tokens, the maximum. Leaves no files. Sets the number of computing
// threads.
Foreseen foresee(const Config& config, const Layout& layout, const ForeseenBy& by);

// Foresees a run that will be trained: its data files must exist. Throws UserError that lists the mistakes in their names
// and in what else is foreseen.
Foreseen foresee_training(const Config& config, const Layout& layout, const ForeseenBy& by);

// Throws UserError for mistakes that can be found without reading text: text without a tokenizer, and tensors of
// model.from that are missing or have other shapes. Warns about a tokenizer that is not the model's.
void check_files(const Foreseen& foreseen);

}  // namespace megalith
