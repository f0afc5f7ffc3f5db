// What each step of a run takes of the data: how many samples, cut into how many sequences of what length, and what
// that adds up to. A function of the settings and the step alone, in O(log) of the number of different lengths.
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
  int64_t samples = 0;    // of data.sequence tokens each
  int64_t pieces = 1;     // sequences that a sample is cut into
  int64_t length = 0;     // of a sequence
  int64_t pace = 0;       // how many tokens of a sequence the layers that drop may keep; 0: none drops
  int64_t spare = 0;      // tokens of a sample that its pieces leave out
  // How many they keep; 0: all.
  int64_t kept() const { return pace < length ? pace : 0; }
  int64_t processed() const { return kept() > 0 ? kept() : length; }  // tokens of a sequence, by a layer that may drop
  int64_t sequences() const { return samples * pieces; }
  int64_t tokens() const { return sequences() * length; }
  // To compare by: of as many tokens, those in longer sequences are more.
  auto work() const { return std::tuple(tokens(), sequences() * processed(), length); }
  bool operator==(const StepShape&) const = default;
};

class StepShapes {
 public:
  // The same shape at every step.
  StepShapes(int64_t batch, int64_t sequence);
  // As the curriculum shapes it and as a model of so many layers drops tokens.
  StepShapes(const Config& config, int64_t layers);

  StepShape shape(int64_t step) const;         // from 0
  // What the first `steps` steps compute, each with the step that it begins at: the next one has another number of
  // sequences, another length or keeps another number of tokens.
  std::vector<std::pair<int64_t, StepShape>> changes(int64_t steps) const;
  int64_t samples_before(int64_t step) const;  // that the steps before it took
  int64_t tokens_before(int64_t step) const;
  double layer_tokens_before(int64_t step) const;  // a token that one of L layers drops counts 1 / L less
  // In the unit of a pacing: what the run has done before this step.
  int64_t before(int64_t step, Counted unit) const;

  // What the run has done before a step, in steps of full batches (train.batch whole samples through all layers), as
  // steps, tokens or layer-tokens count it: what schedules of rates and the length of a run go by.
  double full_steps_before(int64_t step, Counted by) const;
  // The steps that it takes until `full_steps` are done.
  int64_t steps_for(int64_t full_steps, Counted by) const;

 private:
  struct ShapeInterval {  // steps of one shape
    int64_t first_step;
    StepShape shape;
    int64_t samples_before, tokens_before;
    int64_t visits_before;  // tokens that went through a layer, summed over the layers
  };
  const ShapeInterval& interval(int64_t step) const;
  StepShape shape_at(int64_t steps, int64_t tokens) const;
  int64_t visits_of(const StepShape& shape) const;
  int64_t unreachable_from(const ShapeInterval& now) const;  // the step
  void lay_out();

  int64_t batch_, sequence_;
  CurriculumApply apply_ = CurriculumApply::truncate;
  Hold hold_ = Hold::sequences;
  std::optional<Pacing> length_, kept_;
  int64_t layers_ = 1, dropping_layers_ = 0;
  std::vector<ShapeInterval> intervals_;  // never empty; the last one never ends
};

}  // namespace megalith
