// The shape of each step of a run: how many samples it reads, and into how many sequences of what length they are cut.
// Also sums over steps. The shape depends only on the settings and the step. A call takes O(log n) for n different lengths.
#pragma once
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "config/config.h"
#include "data/pacing.h"

namespace megalith {

struct StepShape {
  int64_t samples = 0;    // number of samples, of data.sequence tokens each
  int64_t pieces = 1;     // number of parts that a sample is cut into
  int64_t length = 0;     // tokens of a sequence
  int64_t pace = 0;       // how many tokens of a sequence the layers that drop tokens may keep; 0: no layer drops
  int64_t spare = 0;      // tokens of a sample that its pieces leave out
  int64_t columns = 1;    // number of sequences of a part, which the loss compares
  // How many tokens of a sequence these layers keep; 0: all.
  int64_t kept() const { return pace < length ? pace : 0; }
  int64_t processed() const { return kept() > 0 ? kept() : length; }  // tokens of a sequence that such a layer processes
  int64_t sequences() const { return samples * pieces * columns; }
  int64_t tokens() const { return sequences() * length; }
  // For comparing shapes by work. With equal numbers of tokens, longer sequences are more work.
  auto work() const { return std::tuple(tokens(), sequences() * processed(), length); }
  bool operator==(const StepShape&) const = default;
};

class StepShapes {
 public:
  // The same shape at every step.
  StepShapes(int64_t batch, int64_t sequence);
  // The shapes of a curriculum and of token dropping, for a model with `layers` layers.
  StepShapes(const Config& config, int64_t layers);

  StepShape shape(int64_t step) const;         // steps are counted from 0
  // Returns the different shapes that the first `steps` steps compute, each with its first step. Two shapes differ in
  // the number of sequences, their length, or the number of tokens that are kept.
  std::vector<std::pair<int64_t, StepShape>> changes(int64_t steps) const;
  int64_t samples_before(int64_t step) const;  // samples of all earlier steps
  int64_t tokens_before(int64_t step) const;
  double layer_tokens_before(int64_t step) const;  // a token that one of L layers drops counts as (L - 1) / L
  // Progress of the run before this step, in the unit of a pacing.
  int64_t before(int64_t step, Counted unit) const;

  // Progress of the run before a step, in steps of full batches: train.batch whole samples through all layers. `by` says
  // whether to count steps, tokens or layer-tokens. Learning rate schedules and the length of a run use it.
  double full_steps_before(int64_t step, Counted by) const;
  // Returns the number of steps until `full_steps` are done.
  int64_t steps_for(int64_t full_steps, Counted by) const;

 private:
  struct ShapeInterval {  // consecutive steps with one shape
    int64_t first_step;
    StepShape shape;
    int64_t samples_before, tokens_before;
    int64_t visits_before;  // tokens that passed through a layer, summed over the layers
  };
  const ShapeInterval& interval(int64_t step) const;
  StepShape shape_at(int64_t steps, int64_t tokens) const;
  int64_t visits_of(const StepShape& shape) const;
  int64_t unreachable_from(const ShapeInterval& now) const;  // a step that no run reaches
  void lay_out();

  int64_t batch_, sequence_, columns_ = 1;
  CurriculumApply apply_ = CurriculumApply::truncate;
  Hold hold_ = Hold::sequences;
  std::optional<Pacing> length_, kept_;
  int64_t layers_ = 1, dropping_layers_ = 0;
  std::vector<ShapeInterval> intervals_;  // never empty; the last one has no end
};

}  // namespace megalith
