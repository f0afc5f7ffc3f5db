#include "schedule/values.h"

#include <fmt/format.h>

#include <string_view>

#include "schedule/op_type.h"

namespace megalith {
namespace {

std::string_view name(Value value) {
  switch (value) {
    case Value::target_count: return "target count";
    case Value::loss_sum: return "loss sum";
    case Value::representation: return "representation";
    case Value::representation_gradient: return "gradient of the representation";
    case Value::parameters: return "parameters";
    case Value::optimizer_state: return "optimizer state";
    case Value::gradient: return "gradient";
    case Value::tied_gradient: return "gradient of the tied table";
    case Value::weight_gradient: return "weight gradient";
    case Value::offloaded_gradient: return "gradient on disk";
    case Value::activation: return "activation";
    case Value::saved_tensors: return "saved tensors";
    case Value::saved_attention: return "saved attention";
    case Value::output_gradient: return "gradient of the output";
    case Value::deferred_inputs: return "deferred inputs";
    case Value::offloaded_input: return "offloaded input";
    case Value::sparse_gradient: return "sparse gradient";
    case Value::master_parameters: return "master parameters";
    case Value::reduced_gradient: return "reduced gradient";
    case Value::gradient_norm: return "gradient norm";
    case Value::totals: return "totals";
    case Value::update_decision: return "update decision";
    case Value::saved_block: return "saved block";
    case Value::checkpoint: return "checkpoint";
  }
  return "unknown value";
}

}  // namespace

void Effects::gradient_of(const Schedule& schedule, BlockId block, Access access) {
  add(access, Value::gradient, block, kNoMicro);
  // The head and embedding_gradient add to the gradient of a tied table.
  if (block != kNoBlock && block == schedule.tied_table()) add(access, Value::tied_gradient, block, kNoMicro);
  if (schedule.defers(block)) add(access, Value::weight_gradient, block, kNoMicro);
}

void effects_of(const Schedule& schedule, const Op& op, Effects& out) {
  out.clear();
  type_of(op.kind).effects(schedule, op, out);
}

Value master_of(const Schedule& schedule) {
  return schedule.separate_master() ? Value::master_parameters : Value::parameters;
}

bool exists_on_entry(const Schedule& schedule, const Effect& effect) {
  if (effect.value == Value::loss_sum) return true;
  if (effect.block == kNoBlock || !schedule.holds(effect.block)) return false;
  const Placement placed = schedule.placed(effect.block);
  switch (effect.value) {
    case Value::parameters:
      return placed == Placement::in_memory && !schedule.separate_master();  // otherwise gather or upload creates them
    case Value::master_parameters:
    case Value::optimizer_state: return placed == Placement::in_memory;
    case Value::gradient:
    case Value::weight_gradient:
    case Value::tied_gradient: return placed == Placement::in_memory && schedule.gradient_stays(effect.block);
    case Value::reduced_gradient: return placed == Placement::optimizer_on_disk && !schedule.gradient_stays(effect.block);
    case Value::offloaded_gradient: return placed == Placement::on_disk;
    default: return false;
  }
}

bool belongs_to_pending_update(const Effect& effect) {
  return effect.value == Value::reduced_gradient || effect.value == Value::offloaded_gradient;
}

bool may_exist_on_exit(const Schedule& schedule, const Effect& effect) {
  switch (effect.value) {
    case Value::target_count:
    case Value::loss_sum:
    case Value::gradient_norm:
    case Value::totals:
    case Value::update_decision:
    case Value::checkpoint:
    case Value::optimizer_state:
    case Value::offloaded_gradient: return true;
    case Value::parameters: return schedule.parameters_stay(effect.block);
    case Value::gradient:
    case Value::weight_gradient:
    case Value::tied_gradient: return schedule.gradient_stays(effect.block);
    case Value::master_parameters: return schedule.placed(effect.block) != Placement::on_disk;
    case Value::reduced_gradient:  // if the optimizer state is on disk, it waits for the next load_updated
      return schedule.placed(effect.block) == Placement::optimizer_on_disk;
    default: return false;
  }
}

int32_t contributions(const Schedule& schedule, const Effect& effect) {
  if (effect.value == Value::loss_sum)
    return !schedule.holds(schedule.head()) ? 0 : schedule.scores_batch() ? 1 : schedule.micros;
  if (effect.value == Value::gradient || effect.value == Value::weight_gradient) return schedule.micros;
  if (effect.value != Value::tied_gradient) return 0;
  if (!schedule.table_is_remote()) return schedule.micros + 1;  // embedding_gradient comes last
  // The owner of the table adds the borrower's gradient and then embedding_gradient. The borrower adds the head's gradients.
  return schedule.holds(effect.block) ? 2 : schedule.micros;
}

size_t value_count(const Schedule& schedule) {
  return kValues * (schedule.blocks.size() + 1) * (static_cast<size_t>(schedule.all_micros()) + 1);
}

size_t value_index(const Schedule& schedule, const Effect& effect) {
  // All contributions of all micro-batches go to one value.
  MicroId micro = effect.access == Access::accumulate ? kNoMicro : effect.micro;
  size_t row = static_cast<size_t>(effect.value) * (schedule.blocks.size() + 1) +
               static_cast<size_t>(effect.block + 1);
  return row * (static_cast<size_t>(schedule.all_micros()) + 1) + static_cast<size_t>(micro + 1);
}

std::string describe(const Schedule& schedule, const Effect& effect) {
  std::string text(name(effect.value));
  if (effect.block != kNoBlock) text += fmt::format(" of {}", schedule.blocks[effect.block].name);
  if (effect.micro != kNoMicro && effect.access != Access::accumulate)
    text += fmt::format(", micro-batch {}", effect.micro);
  return text;
}

}  // namespace megalith
