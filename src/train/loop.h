// The training loop. Each step trains, measures, validates, saves and reports, until the run is done, stopped or fails.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/stop_signals.h"
#include "data/dataset.h"
#include "engine/engine.h"
#include "launch/status_page.h"
#include "planner/plan.h"
#include "planner/shape_plans.h"
#include "report/metrics.h"
#include "report/progress.h"
#include "report/tensorboard.h"
#include "run/run.h"
#include "run/run_directory.h"
#include "run/run_directory.h"
#include "text/tokenizer.h"
#include "train/expert_watch.h"
#include "train/saver.h"
#include "train/step.h"
#include "train/step_times.h"
#include "train/train.h"

namespace megalith {

// The content of a checkpoint's state.json besides the engine's counters.
struct LoopState {
  int64_t step = 0;              // steps done
  int64_t tokens = 0;            // tokens trained on
  int64_t skipped = 0;           // steps skipped for non-finite numbers
  int64_t skipped_in_a_row = 0;
};

// The parts that a training loop works with, all borrowed. `tokenizer` may be null. `groups` and `remote` are null if there
// is one rank.
struct LoopParts {
  const Run& run;
  const PlanInput& input;
  const Plan& plan;
  const RunDirectory& directory;
  Engine& engine;
  const Dataset& data;
  const Tokenizer* tokenizer;
  launch::StatusPage& page;
  ProcessGroups* groups = nullptr;
  RemoteHosts* remote = nullptr;
};

class TrainingLoop {
 public:
  // Only rank 0 writes metrics and shows progress.
  explicit TrainingLoop(const LoopParts& parts);
  TrainResult run(LoopState state);

 private:
  void begin(const LoopState& state);                  // opens the logs, removes the last process's summary
  void steps(LoopState& state, const StopSignals& signals);
  void record_interruption(const LoopState& state, const StopSignals& signals) const;  // writes to log.txt
  StepMetrics one_step(LoopState& state, const StopSignals& signals);
  void validate_and_sample(StepMetrics& metrics, bool last);
  void save_now(const LoopState& state);               // saves while nothing else runs
  nlohmann::json state_json(const LoopState& state);
  void compare_ranks();  // collective: collects the predicted and the measured memory of each rank
  nlohmann::json measured();
  nlohmann::json summary_before(const LoopState& state);  // returns the summary of a run that was already finished
  nlohmann::json summary(const LoopState& state, const std::string& how, double seconds) const;
  // Rank 0: adds what was measured, writes summary.json, trace.json and the report.
  void write_summary(nlohmann::json& summary);
  // Any rank: a summary that says what stopped the run. Does not throw if it cannot be written.
  nlohmann::json leave_failure(const LoopState& state, const std::string& error, double seconds);
  void describe_shape(StepMetrics& metrics, int64_t step) const;
  void choose_window();                                // uses the times of the first steps
  void measure_process(int64_t step);
  bool due(int64_t every, const LoopState& state) const { return every > 0 && state.step % every == 0; }
  // Counts in the unit of the run's length. So many short steps of a curriculum have no more validations than few long ones.
  bool validates(const LoopState& state) const;

  const Run& run_;
  const Config& config_;
  const PlanInput& input_;
  Plan plan_;                             // the window may be chosen again
  const RunDirectory& directory_;
  Engine& engine_;
  const Dataset& data_;
  std::string data_fingerprint_;          // in checkpoints, so that a run resumes with the same text only; empty until a save
  const Tokenizer* tokenizer_;
  launch::StatusPage& page_;
  ProcessGroups* groups_;
  const bool leads_;
  const bool sees_run_dir_;
  ShapePlans plans_;
  ExpertWatch experts_;
  Saver saver_;
  std::unique_ptr<Save> pending_;         // written during the next step
  int64_t pending_step_ = 0;
  std::unique_ptr<MetricsLog> log_;
  std::unique_ptr<TensorBoardLog> board_;
  std::unique_ptr<Progress> progress_;
  StepTimes times_;
  nlohmann::json ranks_ = nlohmann::json::array();  // with several ranks: result of compare_ranks
  int64_t process_bytes_ = 0;             // largest resident memory outside of the allocator
  std::optional<double> last_loss_;       // loss of the last step that was not skipped
  std::optional<Validation> last_valid_;
  std::vector<int32_t> token_bytes_;      // by id; empty until a validation needs them, or if they are unknown
  std::string last_checkpoint_;
  bool interrupted_ = false;
  bool stop_requested_ = false;           // at the end of the last step, at least one rank was asked to stop
  bool window_chosen_ = false;            // true if measurements chose the window
};

}  // namespace megalith
