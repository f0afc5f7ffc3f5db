#include "data/step_shapes.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"

namespace megalith {

StepShapes::StepShapes(int64_t batch, int64_t sequence) : batch_(batch), sequence_(sequence) {
  lay_out();
}

StepShapes::StepShapes(const Config& config, int64_t layers)
    : batch_(config.train.batch),
      sequence_(config.data.sequence),
      columns_(config.objective.sequences_of_sample()),
      layers_(layers) {
  for (const CurriculumSettings& entry : config.curriculum) {
    if (!entry.changes_length()) continue;
    apply_ = entry.apply;
    hold_ = entry.hold;
    length_.emplace(entry.pacing);
  }
  if (config.token_dropping.on()) {
    kept_.emplace(config.token_dropping.pacing);
    dropping_layers_ = static_cast<int64_t>(config.token_dropping.layers_of(layers_).size());
  }
  lay_out();
}

StepShape StepShapes::shape_at(int64_t steps, int64_t tokens) const {
  auto value = [&](const Pacing& pacing) {
    return static_cast<int64_t>(pacing.at(pacing.unit() == Counted::steps ? steps : tokens));
  };
  const int64_t length = length_ ? value(*length_) : sequence_;
  // Use whole multiples of the batch. They can be divided by all numbers of ranks and micro-batches that divide the
  // batch. So the layout does not change what a step reads.
  const int64_t fit = hold_ == Hold::tokens ? sequence_ / length : 1;
  StepShape shape{.samples = batch_, .length = length, .pace = kept_ ? value(*kept_) : 0, .columns = columns_};
  (apply_ == CurriculumApply::reshape ? shape.pieces : shape.samples) *= fit;
  shape.spare = sequence_ - shape.pieces * length;
  return shape;
}

int64_t StepShapes::visits_of(const StepShape& shape) const {
  const int64_t dropped = shape.kept() > 0 ? shape.length - shape.kept() : 0;
  return shape.tokens() * layers_ - shape.sequences() * dropped * dropping_layers_;
}

// Returns a step that no run reaches (config/check.cpp ensures this). Before it, tokens times layers can be counted in
// 64 bits.
int64_t StepShapes::unreachable_from(const ShapeInterval& now) const {
  constexpr int64_t kVisits = 8'000'000'000'000'000'000;
  return now.first_step + (kVisits / std::max<int64_t>(1, layers_) - now.tokens_before) / now.shape.tokens();
}

// Finds one change of shape after another. Lengths never decrease, so a binary search finds the step of a change.
void StepShapes::lay_out() {
  intervals_.push_back({0, shape_at(0, 0), 0, 0, 0});
  for (;;) {
    const ShapeInterval now = intervals_.back();
    auto tokens_at = [&](int64_t step) { return now.tokens_before + (step - now.first_step) * now.shape.tokens(); };
    auto differs = [&](int64_t step) { return shape_at(step, tokens_at(step)) != now.shape; };
    auto settled = [&](const std::optional<Pacing>& pacing, int64_t step) {
      return !pacing || (pacing->unit() == Counted::steps ? step : tokens_at(step)) >= pacing->settled();
    };
    const int64_t unreachable = unreachable_from(now);
    int64_t same = now.first_step, other = same;
    for (int64_t stride = 1;; stride *= 2) {  // finds a step that is known to differ
      if (stride >= unreachable - same) return;
      other = same + stride;
      if (differs(other)) break;
      if (settled(length_, other) && settled(kept_, other)) return;
      same = other;
    }
    while (other - same > 1) {
      const int64_t middle = same + (other - same) / 2;
      (differs(middle) ? other : same) = middle;
    }
    const int64_t steps = other - now.first_step;
    intervals_.push_back({other, shape_at(other, tokens_at(other)), now.samples_before + steps * now.shape.samples,
                         tokens_at(other), now.visits_before + steps * visits_of(now.shape)});
  }
}

const StepShapes::ShapeInterval& StepShapes::interval(int64_t step) const {
  MEGALITH_ASSERT(step >= 0, "step {}", step);
  return *std::prev(std::ranges::upper_bound(intervals_, step, {}, &ShapeInterval::first_step));
}

StepShape StepShapes::shape(int64_t step) const {
  return interval(step).shape;
}

std::vector<std::pair<int64_t, StepShape>> StepShapes::changes(int64_t steps) const {
  auto computed = [](const StepShape& shape) { return std::tuple(shape.sequences(), shape.length, shape.kept()); };
  std::vector<std::pair<int64_t, StepShape>> found;
  for (const ShapeInterval& s : intervals_)
    if (s.first_step < steps && (found.empty() || computed(found.back().second) != computed(s.shape)))
      found.emplace_back(s.first_step, s.shape);
  return found;
}

int64_t StepShapes::samples_before(int64_t step) const {
  const ShapeInterval& s = interval(step);
  return s.samples_before + (step - s.first_step) * s.shape.samples;
}

int64_t StepShapes::tokens_before(int64_t step) const {
  const ShapeInterval& s = interval(step);
  return s.tokens_before + (step - s.first_step) * s.shape.tokens();
}

double StepShapes::layer_tokens_before(int64_t step) const {
  const ShapeInterval& s = interval(step);
  return static_cast<double>(s.visits_before + (step - s.first_step) * visits_of(s.shape)) /
         static_cast<double>(layers_);
}

double StepShapes::full_steps_before(int64_t step, Counted by) const {
  const auto a_step = static_cast<double>(batch_ * columns_ * sequence_);
  if (by == Counted::steps) return static_cast<double>(step);
  return (by == Counted::tokens ? static_cast<double>(tokens_before(step)) : layer_tokens_before(step)) / a_step;
}

int64_t StepShapes::steps_for(int64_t full_steps, Counted by) const {
  const auto wanted = static_cast<double>(full_steps);
  int64_t few = 0, enough = 1;
  while (full_steps_before(enough, by) < wanted) few = enough, enough *= 2;
  while (enough - few > 1) {
    const int64_t middle = few + (enough - few) / 2;
    (full_steps_before(middle, by) < wanted ? few : enough) = middle;
  }
  return enough;
}

int64_t StepShapes::before(int64_t step, Counted unit) const {
  return unit == Counted::steps ? step : tokens_before(step);
}

}  // namespace megalith
