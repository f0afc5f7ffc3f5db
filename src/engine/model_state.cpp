#include "engine/model_state.h"

#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/normals.h"
#include "families/blocks.h"
#include "memory/allocator.h"
#include "model/computing_buffer.h"

namespace megalith {
namespace {

std::span<float> floats(const at::Tensor& flat, int64_t offset, int64_t size) {
  if (!flat.defined()) return {};
  return {flat.mutable_data_ptr<float>() + offset, static_cast<size_t>(size)};
}

PartType part_type(Packing packing) { return packing == Packing::bf16 ? PartType::bf16 : PartType::u8; }
const std::string kScaleSuffix = ".scale";

// `begin`: of `out` inside the parameter; any cut gives the same values.
void fill_normal(std::span<float> out, int64_t begin, const Philox& random, float deviation) {
  constexpr int64_t kChunk = 1 << 14;
  const auto size = static_cast<int64_t>(out.size());
  at::parallel_for(0, (size + kChunk - 1) / kChunk, 1, [&](int64_t first, int64_t last) {
    const int64_t from = first * kChunk, to = std::min(size, last * kChunk);
    for (int64_t at = from; at < to; at += kChunk) {
      const auto part = out.subspan(static_cast<size_t>(at), static_cast<size_t>(std::min(kChunk, to - at)));
      fill_normals(random, static_cast<uint64_t>(begin + at), part);
      for (float& value : part) value *= deviation;
    }
  });
}

// A few elements at a time, so that the gradient is still in the cache when it is overwritten: to clear it later is one
// more pass over memory. For optimizers that look at nothing but elements.
void apply_and_clear(const ParameterSlice& whole, const Optimizer& optimizer, const Update& update) {
  constexpr int64_t kPiece = int64_t{1} << 15;  // elements: four streams of them fit a core's own cache
  auto* gradient = const_cast<float*>(whole.gradient.data());  // the caller's to clear
  const int64_t elements = std::ssize(whole.value);
  at::parallel_for(0, (elements + kPiece - 1) / kPiece, 1, [&](int64_t first, int64_t last) {
    for (int64_t begin = first * kPiece; begin < std::min(elements, last * kPiece); begin += kPiece) {
      const auto at = static_cast<size_t>(begin), count = static_cast<size_t>(std::min(kPiece, elements - begin));
      ParameterSlice part{whole.parameter, whole.begin + begin, whole.value.subspan(at, count),
                          whole.gradient.subspan(at, count), {}};
      for (const std::span<float>& slot : whole.slots) part.slots.push_back(slot.subspan(at, count));
      optimizer.apply(part, update, {});
      std::memset(gradient + at, 0, count * sizeof(float));
    }
  });
}

}  // namespace

at::ScalarType compute_type(Precision precision) {
  switch (precision) {
    case Precision::bf16: return at::kBFloat16;
    case Precision::fp16: return at::kHalf;
    case Precision::fp32: break;
  }
  return at::kFloat;
}

ModelState::ModelState(const ModelShape& shape, Precision precision, const Optimizer* optimizer, const Residence& residence,
                       Packing packing, const ModelPart& part)
    : shape_(shape),
      part_(part),
      compute_type_(compute_type(precision)),
      optimizer_(optimizer),
      training_(optimizer != nullptr),
      packing_(packing),
      device_(residence.device) {
  MEGALITH_ASSERT(part.division.device == on_device() && !(on_device() && part.division.ranks > 1));
  if (optimizer && optimizer->statistics_rounds() == 0)
    slot_arrays_ = static_cast<int>(optimizer->slots({"any", {1, 1}, true}).size());
  MEGALITH_ASSERT(!optimizer || !packs() || elementwise(), "only an elementwise optimizer's state is packed");
  int64_t number = 0;  // of the parameter in the model
  for (auto& block : make_blocks(shape, part.ranks)) {
    const auto id = static_cast<BlockId>(blocks_.size());
    State& state = blocks_.emplace_back();
    state.block = std::move(block);
    if (!residence.placement.empty()) state.placement = residence.placement.at(static_cast<size_t>(id));
    divide(state, id);
    for (Part& own : state.parts) own.layout.emplace(state.block->spec(), packing_, own.own);
    if (optimizer) lay_out_optimizer(state, *optimizer);
    for (ParameterFacts& facts : state.facts) facts.number = number++;
    allocate(state);
  }
  for (State& state : blocks_) bind(state);
  open_store(residence);
}

void ModelState::divide(State& state, BlockId id) {
  const Division& division = part_.division;
  state.held = division.stages.of.empty() || division.stages.of.at(static_cast<size_t>(id)) == division.stages.here;
  const bool away = state.placement == Placement::on_disk;
  state.parameters_stay = state.held && !away && !on_device() && !(slices() && division.sharding.zero >= 3);
  state.gradient_stays = state.held && !away && !on_device() && !(slices() && division.sharding.zero >= 2);
  // What is gathered, sliced or uploaded comes whole.
  const std::vector<FlatPart>& parts = state.block->spec().parts;
  for (const FlatPart& spec : separate_master() ? by_ranks(parts) : parts) {
    Part& part = state.parts.emplace_back();
    part.flat = spec.range;
    part.spread = spec.spread;
    part.stored = stored_parts_++;
    if (!state.held) continue;
    const Sharding& sharding = division.sharding;
    const int32_t replicas = part.spread ? sharding.expert_replicas() : sharding.replicas;
    const std::vector<int64_t> cuts = even_cuts(part.flat.size(), replicas);
    const auto place = static_cast<size_t>(part.spread ? part_.expert_replica : part_.replica);
    // Of several ranks with the same expert, one does not know whether another's tokens chose it.
    if (state.placement != Placement::in_memory && (elementwise() || !training_) && replicas == 1)
      part.expert = spec.expert;
    keeps_experts_ |= part.expert >= 0;
    part.counted = {part.flat.begin + cuts[place], part.flat.begin + cuts[place + 1]};
    part.own = slices() ? part.counted : part.flat;
  }
}

const ModelState::Part& ModelState::part_of(const State& state, const ParameterSpec& p) {
  size_t part = state.parts.size() - 1;
  while (p.offset < state.parts[part].flat.begin) part--;
  return state.parts[part];
}

void ModelState::lay_out_optimizer(State& state, const Optimizer& optimizer) {
  const BlockSpec& spec = state.block->spec();
  for (const ParameterSpec& p : spec.parameters) {
    Part& part = part_of(state, p);
    state.facts.push_back({p.name, p.shape, p.decays, 0, p.sign_rate});
    auto& slots = state.slots.emplace_back();
    const std::vector<SlotSpec> wanted = optimizer.slots(state.facts.back());
    MEGALITH_ASSERT(!elementwise() || static_cast<int>(wanted.size()) == slot_arrays_, "{}", p.name);
    for (size_t k = 0; k < wanted.size(); k++) {
      const std::string name = p.name + "." + wanted[k].name;
      if (elementwise()) {
        const Overlap here = overlap(p, part.own);
        slots.push_back({name, p.whole_shape, static_cast<int64_t>(k) * part.own.size() + here.at, here.count});
        continue;
      }
      // An optimizer that looks at rows and columns has whole parameters.
      MEGALITH_ASSERT(!slices() && !p.is_cut(), "{} is divided among ranks", p.name);
      std::vector<int64_t> shape = wanted[k].extent == SlotExtent::element ? p.shape
                                   : wanted[k].extent == SlotExtent::row   ? std::vector<int64_t>{p.shape.front()}
                                                                           : std::vector<int64_t>{p.shape.back()};
      int64_t size = 1;
      for (int64_t n : shape) size *= n;
      slots.push_back({name, shape, part.optimizer_size, size});
      part.optimizer_size += (size + kFlatAlign - 1) / kFlatAlign * kFlatAlign;
    }
  }
}

void ModelState::allocate(State& state) {
  if (!state.held) return;
  const int64_t flat = state.block->spec().flat_size;
  const auto type = at::TensorOptions().dtype(at::kFloat);
  const auto own_of = [&](const Part& part, const at::Tensor& whole, bool within) {
    return within ? whole.narrow(0, part.own.begin, part.own.size()) : at::zeros({part.own.size()}, type);
  };
  if (state.placement != Placement::on_disk) {
    MemoryScope scope(AllocationKind::parameters);
    if (state.parameters_stay)
      state.computing = at::zeros({computing_elements(state.block->spec(), compute_type_)}, type.dtype(compute_type_));
    for (Part& part : state.parts)
      part.values = own_of(part, state.computing, state.parameters_stay && compute_type_ == at::kFloat);
  }
  if (!training_) return;
  if (state.placement != Placement::on_disk) {
    MemoryScope scope(AllocationKind::gradients);
    if (state.gradient_stays) state.gradients = at::zeros({flat}, type);
    for (Part& part : state.parts) part.sum = own_of(part, state.gradients, state.gradient_stays);
  }
  if (state.placement == Placement::in_memory || !elementwise()) {
    MemoryScope scope(AllocationKind::optimizer);
    for (Part& part : state.parts) {
      if (!elementwise()) part.optimizer = at::zeros({part.optimizer_size}, type);
      else if (packs()) part.optimizer = at::zeros({slot_arrays_ * part.layout->slot_bytes()}, type.dtype(at::kByte));
      else part.optimizer = at::zeros({slot_arrays_ * part.own.size()}, type);
    }
  }
}

void ModelState::bind(State& state) {
  state.block->bind(state.computing, state.gradients);
  if (shape_.tied && &state == &blocks_.front()) head().tie(embedding().table());
}

void ModelState::initialise(uint64_t seed) {
  uint64_t number = 0;  // of the parameter in the model: the same for every layout
  for (BlockId id = 0; id < static_cast<BlockId>(blocks_.size()); id++) {
    const BlockSpec& spec = state_of(id).block->spec();
    const uint64_t first = number;
    write_parameters(id, [&](const NamedPart& piece) {
      size_t p = 0;
      while (spec.parameters[p].name != piece.name) p++;
      const ParameterSpec& it = spec.parameters[p];
      if (it.initial_std > 0)
        fill_normal(piece.values, piece.begin, Philox(seed, RandomUse::initial_weights, first + p),
                    static_cast<float>(it.initial_std));
      else
        std::fill(piece.values.begin(), piece.values.end(), static_cast<float>(it.initial));
    });
    number += spec.parameters.size();
  }
  empty_optimizer();
}

void ModelState::empty_optimizer() {
  for (BlockId id = 0; id < static_cast<BlockId>(blocks_.size()); id++)
    write_optimizer(id, [](const NamedPart& piece) { std::ranges::fill(piece.bytes(), std::byte{0}); });
}

void ModelState::copy_to_computing(State& state, const Part& part) {
  write_computing(state.block->spec(), state.computing, part.own.begin, part.values);
}

void ModelState::values_changed() {
  if (compute_type_ == at::kFloat) return;
  for (State& state : blocks_)
    for (const Part& part : state.parts)
      if (part.values.defined() && state.parameters_stay) copy_to_computing(state, part);
}

std::vector<NamedPart> ModelState::parameters(BlockId id) { return parts_of(id, &Part::values); }

std::vector<NamedPart> ModelState::gradients(BlockId id) { return parts_of(id, &Part::sum); }

std::vector<NamedPart> ModelState::parts_of(BlockId id, at::Tensor Part::* buffer) {
  State& state = state_of(id);
  std::vector<NamedPart> parts;
  for (const ParameterSpec& p : state.block->spec().parameters) {
    const Part& part = part_of(state, p);
    const Overlap here = overlap(p, part.own);
    parts.push_back({p.name, p.whole_shape, floats(part.*buffer, here.at, here.count), here.begin});
  }
  return parts;
}

std::vector<NamedPart> ModelState::optimizer_state(BlockId id) {
  State& state = state_of(id);
  std::vector<NamedPart> parts;
  for (size_t p = 0; p < state.slots.size(); p++) {
    const ParameterSpec& parameter = state.block->spec().parameters[p];
    const Part& part = part_of(state, parameter);
    for (const Slot& slot : state.slots[p]) {
      if (!packs()) {
        parts.push_back({slot.name, slot.shape, floats(part.optimizer, slot.offset, slot.size),
                         elementwise() ? overlap(parameter, part.own).begin : 0});
        continue;
      }
      parts.push_back({slot.name, slot.shape, {}, 0, part_type(packing_)});
      if (part.layout->scales(p) > 0) parts.push_back({slot.name + kScaleSuffix, {part.layout->scales(p)}, {}});
    }
  }
  return parts;
}

int64_t ModelState::optimizer_bytes(BlockId id) const {
  int64_t bytes = 0;
  for (const Part& part : state_of(id).parts)
    bytes += elementwise() ? slot_arrays_ * part.layout->slot_bytes() : part.optimizer_size * int64_t{sizeof(float)};
  return bytes;
}

ParameterSlice ModelState::slice(State& state, size_t parameter) const {
  const ParameterSpec& p = state.block->spec().parameters[parameter];
  const Part& part = part_of(state, p);
  const Overlap here = overlap(p, part.own);
  ParameterSlice s{&state.facts[parameter], here.begin, floats(part.values, here.at, here.count),
                   floats(part.sum, here.at, here.count), {}};
  for (const Slot& slot : state.slots[parameter]) s.slots.push_back(floats(part.optimizer, slot.offset, slot.size));
  return s;
}

double ModelState::gradient_squares(BlockId id) const {
  const State& state = state_of(id);
  double sum = 0;
  for (const ParameterSpec& p : state.block->spec().parameters) {
    const Part& part = part_of(state, p);
    const Overlap here = overlap(p, part.counted);
    if (here.count == 0 || !counts(p) || p.sign_rate > 0 || !part.chosen) continue;
    sum += sum_of_squares(floats(part.sum, part.counted.begin - part.own.begin + here.at, here.count));
  }
  return sum;
}

bool ModelState::counts(const ParameterSpec& p) const { return p.is_cut() || part_.ranks.split.tensor_rank == 0; }

void ModelState::hand_on(const State& state, size_t parameter, NamedPart piece, bool fills, const PieceWork& work) const {
  const ParameterSpec& p = state.block->spec().parameters[parameter];
  const int64_t size = piece.type == PartType::f32 ? 4 : piece.type == PartType::bf16 ? 2 : 1;
  const auto cut = [&](int64_t first, int64_t count) {  // elements of the piece
    NamedPart part = piece;
    if (piece.type == PartType::f32)
      part.values = piece.values.subspan(static_cast<size_t>(first), static_cast<size_t>(count));
    else part.packed = piece.packed.subspan(static_cast<size_t>(first * size), static_cast<size_t>(count * size));
    return part;
  };
  int64_t first = 0, last = static_cast<int64_t>(piece.bytes().size()) / size;
  if (!fills) {
    if (!counts(p)) return;
    const Overlap counted = overlap(p, part_of(state, p).counted);
    first = std::max(first, counted.begin - piece.begin);
    last = std::min(last, counted.begin + counted.count - piece.begin);
  }
  if (first >= last) return;
  for_each_run(p, piece.begin + first, piece.begin + last, [&](int64_t whole, int64_t here, int64_t count) {
    NamedPart run = cut(here - piece.begin, count);
    run.begin = whole;
    work(run);
  });
}

std::byte* ModelState::record(const Part& part, size_t slot, int64_t chunk) {
  return static_cast<std::byte*>(part.optimizer.mutable_data_ptr()) +
         static_cast<int64_t>(slot) * part.layout->slot_bytes() + part.layout->record_offset(chunk);
}

void ModelState::apply_tile(State& state, Part& part, const BlockStore::Tile& tile, float* value, const float* gradient,
                            std::span<std::byte* const> records, const Optimizer& optimizer,
                            std::span<const Update> updates) {
  for (StateLayout::Piece piece : part.layout->pieces(tile.chunk)) {
    // What of it is in the tile. (A tile of packed numbers is the chunk: their scales are not cut.)
    const int64_t skip = std::max<int64_t>(0, tile.first - piece.at);
    piece.begin += skip;
    piece.at += skip;
    piece.count = std::min(piece.count - skip, tile.first + tile.count - piece.at);
    if (piece.count <= 0) continue;
    const auto count = static_cast<size_t>(piece.count);
    PackedSlice slice{&state.facts[piece.parameter], piece.begin, {value + piece.at, count}, {}, {}};
    if (gradient) slice.gradient = {gradient + piece.at, count};
    for (std::byte* record : records) slice.slots.push_back(part.layout->slot(tile.chunk, piece, record));
    apply_packed(optimizer, packing_, slice, updates);
  }
}

void ModelState::each_piece(State& state, Part& part, size_t slot, int64_t chunk, std::byte* record, bool fills,
                            const PieceWork& work) {
  for (const StateLayout::Piece& piece : part.layout->pieces(chunk)) {
    const Slot& of = state.slots[piece.parameter][slot];
    const PackedSlot at = part.layout->slot(chunk, piece, record);
    const auto count = static_cast<size_t>(piece.count), scales = static_cast<size_t>(piece.scales);
    if (packs()) {
      const size_t bytes = count * static_cast<size_t>(packed_bytes(packing_));
      hand_on(state, piece.parameter, {of.name, of.shape, {}, piece.begin, part_type(packing_), {at.numbers, bytes}}, fills,
              work);
    } else {
      hand_on(state, piece.parameter, {of.name, of.shape, {reinterpret_cast<float*>(at.numbers), count}, piece.begin}, fills,
              work);
    }
    // (Scales are of whole parameters: blocks of elements with a common scale are not cut.)
    if (scales > 0 && (fills || first_of_replicas()))
      work({of.name + kScaleSuffix, {part.layout->scales(piece.parameter)}, {at.scales, scales}, piece.first_scale});
  }
}

void ModelState::apply(State& state, const Optimizer& optimizer, const Update& update) {
  if (packs()) {
    std::vector<std::byte*> records(static_cast<size_t>(slot_arrays_));
    for (Part& part : state.parts)
      for (int64_t chunk = 0; chunk < part.layout->chunks(); chunk++) {
        for (size_t k = 0; k < records.size(); k++) records[k] = record(part, k, chunk);
        const int64_t begin = chunk * kStateChunk;
        apply_tile(state, part, {0, chunk, 0, part.layout->chunk_size(chunk)}, part.values.mutable_data_ptr<float>() + begin,
                   part.sum.const_data_ptr<float>() + begin, records, optimizer, {&update, 1});
      }
    return;
  }
  for (size_t i = 0; i < state.facts.size(); i++) {
    ParameterSlice whole = slice(state, i);
    if (whole.value.empty()) continue;
    std::vector<std::vector<double>> statistics;
    for (int round = 0; round < optimizer.statistics_rounds(); round++) {
      std::vector<double> sums(static_cast<size_t>(optimizer.statistics_size(state.facts[i], round)), 0.0);
      optimizer.gather(round, whole, update, statistics, sums);
      statistics.push_back(std::move(sums));
    }
    optimizer.apply(whole, update, statistics);
  }
}

void ModelState::update(BlockId id, const Optimizer& optimizer, const Update& update) {
  State& state = state_of(id);
  // The gradient is all of one piece with what is updated, and the optimizer looks at nothing but elements.
  const bool in_turn = state.gradient_stays && elementwise() && !packs() && !slices();
  for (size_t i = 0; i < state.facts.size() && in_turn; i++) apply_and_clear(slice(state, i), optimizer, update);
  if (!in_turn) apply(state, optimizer, update);
  if (compute_type_ != at::kFloat && !separate_master())  // else gather or upload brings all
    for (const Part& part : state.parts) copy_to_computing(state, part);
  if (!in_turn) clear_gradient(id);
}

void ModelState::zero(const at::Tensor& flat) {
  // memset writes whole cache lines without reading them first, which LibTorch's fill does not.
  float* data = flat.mutable_data_ptr<float>();
  at::parallel_for(0, flat.numel(), int64_t{1} << 18, [&](int64_t begin, int64_t end) {
    std::memset(data + begin, 0, static_cast<size_t>(end - begin) * sizeof(float));
  });
}

void ModelState::clear_gradient(BlockId id) {
  if (state_of(id).gradient_stays) zero(state_of(id).gradients);
}

}  // namespace megalith
