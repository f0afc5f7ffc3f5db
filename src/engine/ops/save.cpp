#include "schedule/ops/save.h"

#include "engine/op_handler.h"

namespace megalith {
namespace {

void save(StepState& step, const Op& op) {
  using Kind = CheckpointSink::Kind;
  CheckpointSink& sink = *step.input.sink;
  step.pieces.read_parameters(op.block, Lane::write, [&](const TensorPiece& piece) { sink.write(Kind::parameter, piece); });
  step.pieces.read_optimizer(op.block, Lane::write, [&](const TensorPiece& piece) { sink.write(Kind::optimizer, piece); });
}

}  // namespace

std::span<const OpHandler> save_handlers() {
  static constexpr OpHandler all[] = {
      {ops::save, save},
      {ops::commit, [](StepState& step, const Op&) { step.input.sink->commit(); }},
  };
  return all;
}

}  // namespace megalith
