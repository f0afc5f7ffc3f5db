#include "schedule/effects.h"

#include <fmt/format.h>

#include <string_view>

namespace megalith {
namespace {

std::string_view name(Thing thing) {
  switch (thing) {
    case Thing::targets: return "number of targets";
    case Thing::loss: return "sum of the losses";
    case Thing::parameters: return "parameters";
    case Thing::optimizer: return "optimizer state";
    case Thing::gradient: return "gradient";
    case Thing::tied_gradient: return "gradient of the tied table";
    case Thing::product_gradient: return "gradient of the weights";
    case Thing::stowed_gradient: return "gradient on disk";
    case Thing::activation: return "activation";
    case Thing::saved: return "what forward kept";
    case Thing::attention: return "what attention kept";
    case Thing::output_gradient: return "gradient of the output";
    case Thing::deferred: return "weight products put off";
    case Thing::parked: return "parked input";
    case Thing::aside: return "gradient kept aside";
    case Thing::slice: return "home of the parameters";
    case Thing::sum: return "whole gradient at home";
    case Thing::norm: return "norm";
    case Thing::totals: return "sum over the ranks";
    case Thing::scale: return "scale of the updates";
    case Thing::written: return "saved copy";
    case Thing::checkpoint: return "checkpoint";
  }
  return "unknown thing";
}

// Whether a block's input stays after its forward, as it is.
bool keeps_input(const Schedule& schedule, BlockId block) {
  if (!schedule.training || schedule.keeps(block) == Keep::none) return false;
  return schedule.keeps(block) == Keep::input || !schedule.blocks[block].packs_input;
}

}  // namespace

std::vector<Effect> effects(const Schedule& schedule, const Op& op) {
  using enum Touch;
  const BlockId b = op.block;
  const MicroId m = op.micro;
  const BlockId head = schedule.head(), tied = schedule.tied_table();
  const bool has_table =
      tied != kNoBlock && b == tied;  // its table's gradient is the head's and fold's to add to
  std::vector<Effect> list;
  auto add = [&](Touch touch, Thing thing, BlockId block = kNoBlock, MicroId micro = kNoMicro) {
    list.push_back({touch, thing, block, micro});
  };
  const auto add_gradient = [&](Touch touch) {
    add(touch, Thing::gradient, b);
    if (has_table) add(touch, Thing::tied_gradient, b);
    if (schedule.defers(b)) add(touch, Thing::product_gradient, b);
  };
  const Thing home = schedule.home_is_apart() ? Thing::slice : Thing::parameters;  // what updates change
  auto score = [&] {  // the head's look at a micro-batch
    add(needs, Thing::targets);
    if (tied != kNoBlock) add(needs, Thing::parameters, tied);
    add(adds, Thing::loss, kNoBlock, m);
  };

  switch (op.kind) {
    case OpKind::count:
      add(makes, Thing::targets);
      break;
    case OpKind::forward:
      add(needs, Thing::parameters, b);
      if (b > 0) add(keeps_input(schedule, b) ? needs : takes, Thing::activation, b - 1, m);
      if (b < head) add(makes, Thing::activation, b, m);
      if (b == head) score();
      if (schedule.training && schedule.keeps(b) == Keep::all) add(makes, Thing::saved, b, m);
      if (schedule.training && schedule.keeps(b) == Keep::attention) add(makes, Thing::attention, b, m);
      break;
    case OpKind::recompute:
      add(needs, Thing::parameters, b);
      if (b > 0) add(schedule.blocks[b].packs_input ? takes : needs, Thing::activation, b - 1, m);
      if (schedule.keeps(b) == Keep::attention) add(needs, Thing::attention, b, m);
      add(makes, Thing::saved, b, m);
      if (schedule.output_again(b)) add(makes, Thing::activation, b, m);
      break;
    case OpKind::loss:
      add(needs, Thing::parameters, b);
      add(takes, Thing::activation, b - 1, m);
      score();
      add(adds, Thing::gradient, b, m);
      if (tied != kNoBlock) add(adds, Thing::tied_gradient, tied, m);
      add(makes, Thing::output_gradient, b - 1, m);
      break;
    case OpKind::backward:
      if (schedule.blocks[b].backward_uses_parameters) add(needs, Thing::parameters, b);
      if (schedule.keeps(b) == Keep::attention) add(takes, Thing::attention, b, m);
      add(takes, Thing::saved, b, m);
      add(takes, Thing::output_gradient, b, m);
      if (b > 0 && !schedule.blocks[b].packs_input) add(takes, Thing::activation, b - 1, m);
      if (b > 0) add(makes, Thing::output_gradient, b - 1, m);
      add(adds, Thing::gradient, b, m);
      if (has_table) add(makes, Thing::aside, b, m);
      if (schedule.defers(b)) add(makes, Thing::deferred, b, m);
      break;
    case OpKind::weigh:
      add(takes, Thing::deferred, b, m);
      add(adds, Thing::product_gradient, b, m);
      break;
    case OpKind::fold:
      for (MicroId micro = 0; micro < schedule.micros; micro++) add(takes, Thing::aside, b, micro);
      add(adds, Thing::tied_gradient, b);
      break;
    case OpKind::norm:
      if (schedule.sum_is_apart()) add(needs, Thing::sum, b);
      else add_gradient(needs);
      add(makes, Thing::norm, b);
      break;
    case OpKind::total:
    case OpKind::clip:
      if (op.kind == OpKind::clip && schedule.division.ranks > 1) {
        add(needs, Thing::totals);
      } else {
        add(needs, Thing::loss);
        for (BlockId block = 0; schedule.training && block <= head; block++)
          if (schedule.holds(block)) add(needs, Thing::norm, block);
      }
      add(makes, op.kind == OpKind::clip ? Thing::scale : Thing::totals);
      break;
    case OpKind::update:
      add(needs, Thing::scale);
      add(changes, home, b);
      if (schedule.slices() && schedule.parameters_stay(b)) add(changes, Thing::parameters, b);  // they lie in one place
      add(changes, Thing::optimizer, b);
      if (schedule.sum_is_apart()) add(takes, Thing::sum, b);
      if (schedule.gradient_stays(b)) add_gradient(changes);  // to zero, for the next step
      break;
    case OpKind::renew:
      if (schedule.placed(b) == Placement::away) add(takes, Thing::stowed_gradient, b);
      else if (!schedule.gradient_stays(b)) add(takes, Thing::sum, b);
      else if (schedule.training) add_gradient(makes);
      add(makes, Thing::optimizer, b);
      add(makes, home, b);
      break;
    case OpKind::fetch:
      add(needs, Thing::optimizer, b);  // the disk's are up to date when renew has made it
      add(makes, home, b);
      break;
    case OpKind::upload:
    case OpKind::gather:
      add(schedule.placed(b) == Placement::away ? takes : needs, Thing::slice, b);
      add(makes, Thing::parameters, b);
      break;
    case OpKind::drop:  // in a step that computes nothing only the home of a block came in
      add(takes, schedule.micros == 0 ? home : Thing::parameters, b);
      break;
    case OpKind::clear:
      if (schedule.borrows(b)) add(makes, Thing::tied_gradient, b);
      else add_gradient(makes);
      break;
    case OpKind::reduce:
      add_gradient(schedule.slices() && !schedule.gradient_stays(b) ? takes : needs);
      add(makes, Thing::sum, b);
      break;
    case OpKind::download:
      add_gradient(takes);
      add(makes, Thing::sum, b);
      break;
    case OpKind::stow:
      if (!schedule.home_is_apart()) add_gradient(takes);
      if (schedule.sum_is_apart()) add(takes, Thing::sum, b);
      add(makes, Thing::stowed_gradient, b);
      break;
    case OpKind::park:
      add(takes, Thing::activation, b - 1, m);
      add(makes, Thing::parked, b, m);
      break;
    case OpKind::unpark:
      add(takes, Thing::parked, b, m);
      add(makes, Thing::activation, b - 1, m);
      break;
    case OpKind::send: add(takes, Thing::activation, b, m); break;
    case OpKind::receive: add(makes, Thing::activation, b, m); break;
    case OpKind::send_back: add(takes, Thing::output_gradient, b, m); break;
    case OpKind::receive_back: add(makes, Thing::output_gradient, b, m); break;
    case OpKind::lend: add(schedule.borrows(b) ? makes : needs, Thing::parameters, b); break;
    case OpKind::collect:  // the first of the owner's two contributions
      if (schedule.borrows(b)) add(takes, Thing::tied_gradient, b);
      else add(adds, Thing::tied_gradient, b, 0);
      break;
    case OpKind::save:
      if (schedule.placed(b) != Placement::away) add(needs, home, b);  // else the disk's are taken
      add(needs, Thing::optimizer, b);
      add(makes, Thing::written, b);
      break;
    case OpKind::commit:
      for (BlockId block = 0; block <= head; block++)
        if (schedule.holds(block)) add(takes, Thing::written, block);
      add(makes, Thing::checkpoint);
      break;
  }
  return list;
}

bool there_on_entry(const Schedule& schedule, const Effect& effect) {
  if (effect.thing == Thing::loss) return true;
  if (effect.block == kNoBlock || !schedule.holds(effect.block)) return false;
  const Placement placed = schedule.placed(effect.block);
  switch (effect.thing) {
    case Thing::parameters:
      return placed == Placement::memory && !schedule.home_is_apart();  // else gather or upload makes them
    case Thing::slice:
    case Thing::optimizer: return placed == Placement::memory;
    case Thing::gradient:
    case Thing::product_gradient:
    case Thing::tied_gradient: return placed == Placement::memory && schedule.gradient_stays(effect.block);
    case Thing::sum: return placed == Placement::moments_away && !schedule.gradient_stays(effect.block);
    case Thing::stowed_gradient: return placed == Placement::away;
    default: return false;
  }
}

bool there_on_exit(const Schedule& schedule, const Effect& effect) {
  switch (effect.thing) {
    case Thing::targets:
    case Thing::loss:
    case Thing::norm:
    case Thing::totals:
    case Thing::scale:
    case Thing::checkpoint:
    case Thing::optimizer:
    case Thing::stowed_gradient: return true;
    case Thing::parameters: return schedule.parameters_stay(effect.block);
    case Thing::gradient:
    case Thing::product_gradient:
    case Thing::tied_gradient: return schedule.gradient_stays(effect.block);
    case Thing::slice: return schedule.placed(effect.block) != Placement::away;
    case Thing::sum:  // moments away: it waits for the next renew
      return schedule.placed(effect.block) == Placement::moments_away;
    default: return false;
  }
}

int32_t contributions(const Schedule& schedule, const Effect& effect) {
  if (effect.thing == Thing::loss) return schedule.holds(schedule.head()) ? schedule.micros : 0;
  if (effect.thing == Thing::gradient || effect.thing == Thing::product_gradient) return schedule.micros;
  if (effect.thing != Thing::tied_gradient) return 0;
  if (!schedule.table_is_lent()) return schedule.micros + 1;  // fold's comes last
  return schedule.holds(effect.block) ? 2 : schedule.micros;  // what was collected, then fold's; or the head's alone
}

size_t thing_count(const Schedule& schedule) {
  return kThings * (schedule.blocks.size() + 1) * (static_cast<size_t>(schedule.micros) + 1);
}

size_t thing_index(const Schedule& schedule, const Effect& effect) {
  // Contributions differ in their micro-batch but go to one thing.
  MicroId micro = effect.touch == Touch::adds ? kNoMicro : effect.micro;
  size_t row = static_cast<size_t>(effect.thing) * (schedule.blocks.size() + 1) +
               static_cast<size_t>(effect.block + 1);
  return row * (static_cast<size_t>(schedule.micros) + 1) + static_cast<size_t>(micro + 1);
}

std::string describe(const Schedule& schedule, const Effect& effect) {
  std::string text(name(effect.thing));
  if (effect.block != kNoBlock) text += fmt::format(" of {}", schedule.blocks[effect.block].name);
  if (effect.micro != kNoMicro && effect.touch != Touch::adds)
    text += fmt::format(", micro-batch {}", effect.micro);
  return text;
}

}  // namespace megalith
