// How a run is divided over ranks, as numbers: ranks along each axis, and the variants of the division.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "layout/axis.h"

namespace megalith {

// The data that ranks exchange in attention when sequences are cut over them.
// ring: keys and values travel around a ring of ranks.
// ulysses: q, k and v are exchanged once, so that each rank computes some heads of whole sequences. The output goes back.
enum class ContextForm : uint8_t { ring, ulysses };
constexpr std::array<std::string_view, 2> names_of(ContextForm) { return {"ring", "ulysses"}; }

// The order of the micro-batches on the stages of a pipeline.
enum class PipelineOrder : uint8_t {
  gpipe,        // forward of all micro-batches, then backward of all
  one_f_one_b,  // backward of a micro-batch as soon as possible: stage s of n keeps at most n - s micro-batches
  interleaved,  // the same with several chunks of the model on each stage: less waiting at both ends, more exchange
  zero_bubble,  // as 1F1B, but backward has two parts: activation gradients at once, weight gradients in idle time
};
constexpr std::array<std::string_view, 4> names_of(PipelineOrder) { return {"gpipe", "1f1b", "interleaved", "zero_bubble"}; }

struct Layout {
  int32_t data = 1;
  int32_t pipeline = 1;
  int32_t context = 1;
  int32_t tensor = 1;
  int32_t expert = 1;  // a divisor of data: experts are spread over groups of this many neighbours on the data axis
  int32_t zero = 0;    // ZeRO stage. Sliced over the replicas: 1 optimizer state, 2 also gradients, 3 also parameters
  ContextForm context_form = ContextForm::ring;
  PipelineOrder order = PipelineOrder::one_f_one_b;
  int32_t chunks = 1;  // chunks of the model on each pipeline stage: more than one only if `order` is interleaved

  int32_t ranks() const { return data * pipeline * context * tensor; }
  int32_t along(Axis axis) const;
  // Number of ranks that hold the same parameters and work on different sequences or different positions of them.
  int32_t replicas() const { return data * context; }
  int32_t expert_replicas() const { return replicas() / expert; }  // number of replicas that hold the same experts
  // True with ZeRO: each replica updates one slice of the state of every block.
  bool slices() const { return replicas() > 1 && zero > 0; }
  // True if gradients are summed over ranks.
  bool reduces() const { return replicas() > 1 || tensor > 1; }
  // True if some rank holds only a part of a parameter.
  bool divides_parameters() const { return slices() || tensor > 1 || expert > 1; }
  bool operator==(const Layout&) const = default;
};

// "data 4 × pipeline 2, experts over 2". Axes with one rank are left out. "1 rank" if all axes have one rank.
std::string show(const Layout& layout);

// Returns every layout of exactly `ranks` ranks with expert = 1. Layouts with a longer data axis come first.
std::vector<Layout> layouts_of(int32_t ranks);

}  // namespace megalith
