// How a run is divided over ranks, as numbers: ranks along each axis, and the forms that the division takes.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "layout/axis.h"

namespace megalith {

// What travels while attention runs over sequences that are cut: keys and values, round a ring; or q, k, v once and the
// output back, so that each rank has some heads of whole sequences (Ulysses).
enum class ContextForm : uint8_t { ring, ulysses };
constexpr std::array<std::string_view, 2> names_of(ContextForm) { return {"ring", "ulysses"}; }

// The order of the micro-batches on the stages of a pipeline.
enum class PipelineOrder : uint8_t {
  gpipe,        // all micro-batches forward, then all back
  one_f_one_b,  // as soon as a micro-batch can go back it does: a stage keeps as many as there are stages behind it
  interleaved,  // the same with several chunks of the model on each stage: less waiting at both ends, more exchange
  zero_bubble,  // as 1F1B, with backward in two: gradients of activations at once, those of weights when a stage would wait
};
constexpr std::array<std::string_view, 4> names_of(PipelineOrder) { return {"gpipe", "1f1b", "interleaved", "zero_bubble"}; }

struct Layout {
  int32_t data = 1;
  int32_t pipeline = 1;
  int32_t context = 1;
  int32_t tensor = 1;
  int32_t expert = 1;  // a divisor of data: experts are spread over each run of as many neighbours on it
  int32_t zero = 0;    // sliced over the replicas: 1 optimizer state, 2 gradients too, 3 parameters too
  ContextForm context_form = ContextForm::ring;
  PipelineOrder order = PipelineOrder::one_f_one_b;
  int32_t chunks = 1;  // of the model on each stage of the pipeline: more than one if `order` is interleaved

  int32_t ranks() const { return data * pipeline * context * tensor; }
  int32_t along(Axis axis) const;
  // Ranks that hold the same parameters and work on different sequences, or on different positions of them.
  int32_t replicas() const { return data * context; }
  int32_t expert_replicas() const { return replicas() / expert; }  // of these, the ranks that hold the same experts
  // ZeRO: each replica updates one slice of the state of every block.
  bool slices() const { return replicas() > 1 && zero > 0; }
  // Gradients are summed over ranks.
  bool reduces() const { return replicas() > 1 || tensor > 1; }
  // True if some rank holds only a part of a parameter.
  bool divides_parameters() const { return slices() || tensor > 1 || expert > 1; }
  bool operator==(const Layout&) const = default;
};

// "data 4 × pipeline 2, experts over 2". Axes of one rank are left out; "1 rank" if all are.
std::string show(const Layout& layout);

// Every layout of exactly `ranks` ranks (expert 1). Layouts with a longer data axis come first.
std::vector<Layout> layouts_of(int32_t ranks);

}  // namespace megalith
