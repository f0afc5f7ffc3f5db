#include "engine/residency.h"

#include <algorithm>
#include <ranges>

#include "base/error.h"
#include "engine/block_update.h"
#include "memory/allocator.h"
#include "model/computing_buffer.h"
#include "model/tensor_ops.h"

namespace megalith {
namespace {

static_assert(kPartAlign * sizeof(float) % kDiskAlign == 0, "segments of a flat buffer are loaded one by one");

// After this many pending updates, an expert is loaded and applies them even if no token chooses it. So the log stays
// short, and applying it takes little time. Each expert has its own limit, up to half lower, so that not all experts load
// in the same step.
constexpr int64_t kMostWaiting = 64;

float* as_floats(std::byte* bytes) { return reinterpret_cast<float*>(bytes); }

// Describes any bytes as an array of float32.
StoredArray array_of(int64_t bytes) { return {(bytes + 3) / 4}; }

// Calls work(bytes of the tensor, bytes of the chunk) for each chunk of a tensor on disk.
template <class Work>
auto chunks_of(const at::Tensor& tensor, const Work& work) {
  return [&tensor, work](int64_t number, std::span<std::byte* const> chunk) {
    const int64_t begin = number * kSpillChunk;
    std::byte* data = static_cast<std::byte*>(tensor.mutable_data_ptr()) + begin;
    work(std::span(data, static_cast<size_t>(std::min<int64_t>(kSpillChunk, static_cast<int64_t>(tensor.nbytes()) - begin))),
         chunk[0]);
  };
}

}  // namespace

Residency::Residency(BlockStates& model, const Optimizer* optimizer, const StorageOptions& storage)
    : model_(model), optimizer_(optimizer), device_(storage.device), progress_(model.segments()) {
  for (const BlockState& state : model_)
    loads_experts_ |= std::ranges::any_of(state.segments, [](const SegmentState& s) { return s.expert >= 0; });
  open_store(storage);
}

void Residency::open_store(const StorageOptions& storage) {
  std::vector<StoredBlock> stored;
  bool any = false;
  const StateFormat& format = model_.format();
  for (BlockId id = 0; id < static_cast<BlockId>(model_.size()); id++) {
    const BlockState& state = model_.at(id);
    const Placement placement = state.home.placement;
    for (const SegmentState& segment : state.segments) {
      StoredBlock& block = stored.emplace_back();
      if (!state.home.here) continue;
      // Inputs are stored with the first segment.
      const auto b = static_cast<size_t>(id);
      if (&segment == &state.segments.front() && b < storage.offloaded_inputs.size() && storage.offloaded_inputs[b] > 0) {
        block.inputs.assign(static_cast<size_t>(storage.micros), array_of(storage.offloaded_inputs[b]));
        any = true;
      }
      if (placement == Placement::in_memory) continue;
      any = true;
      if (placement == Placement::on_disk) block.parameters.elements = segment.own.size();
      if (placement == Placement::on_disk && format.training) block.gradient.elements = segment.own.size();
      if (format.training && format.elementwise())
        block.slots.assign(static_cast<size_t>(format.slot_arrays), stored_slot(segment.format->size()));
    }
  }
  if (any) store_ = std::make_unique<BlockStore>(storage.spill, stored, storage.staging);
}

// True if the segment should be loaded with its block. A segment that the last use needed is likely to be needed again. A
// waiting gradient must be applied before the next gradient needs its place.
bool Residency::is_due(const SegmentState& segment) const {
  const int64_t most = kMostWaiting - segment.stored % (kMostWaiting / 2);
  return segment.chosen || of(segment).gradient_waits || waiting(segment) >= most;
}

bool Residency::is_pending(const BlockState& state) const {
  return state.home.here &&
         std::ranges::any_of(state.segments, [&](const SegmentState& segment) { return waiting(segment) > 0; });
}

bool Residency::is_pending(BlockId id) const { return is_pending(std::as_const(model_).at(id)); }

void Residency::allocate_parameters(BlockState& state) {
  MemoryScope scope(AllocationKind::parameters);
  const at::ScalarType type = model_.format().compute_type;
  const int64_t elements = computing_elements(state.spec(), type);
  const bool separate = model_.layout().separate_master();
  if (!separate) model_.rebind(state, [&] { state.computing = flat_buffer(elements, type); });
  for (SegmentState& segment : state.segments) {
    // State that will be gathered or uploaded is loaded whole, in float32. Checkpoints are saved from it.
    if (separate) segment.values = flat_buffer(segment.own.size(), at::kFloat);
    else if (type == at::kFloat) segment.values = state.computing.narrow(0, segment.own.begin, segment.own.size());
  }
}

void Residency::fill_computing(BlockState& state, const SegmentState& segment, int64_t begin,
                               std::span<const float> values) {
  if (model_.format().wide() || model_.layout().separate_master()) return;  // a separate master: gather or upload converts
  const auto count = static_cast<int64_t>(values.size());
  const at::Tensor from = tensor::from_blob(const_cast<float*>(values.data()), {count}, at::kFloat);
  write_computing(state.spec(), state.computing, segment.own.begin + begin, from);
}

void Residency::load_updated(BlockId id, Lane lane, LoadScope scope) {
  BlockState& state = model_.at(id);
  if (!model_.format().elementwise() && is_pending(state)) return load_whole_updated(state, lane);
  if (state.home.placement == Placement::on_disk) allocate_parameters(state);
  std::vector<SegmentState*> loaded;
  for (SegmentState& segment : state.segments) {
    if (scope == LoadScope::all || is_due(segment)) loaded.push_back(&segment);
    segment.chosen = segment.expert < 0;
    of(segment).present = false;
  }
  load_segments(state, loaded, lane);
}

void Residency::load_segments(BlockState& state, std::span<SegmentState* const> segments, Lane lane) {
  std::vector<SegmentState*> behind, current;
  for (SegmentState* segment : segments) (waiting(*segment) > 0 ? behind : current).push_back(segment);
  stream_updated(state, behind, lane);
  for (SegmentState* segment : behind) mark_updated(state, *segment);
  if (state.home.placement == Placement::on_disk) read(state, current, lane);
  for (SegmentState* segment : segments) of(*segment).present = true;
}

void Residency::stream_updated(BlockState& state, std::span<SegmentState* const> segments, Lane lane) {
  const StateFormat& format = model_.format();
  const bool on_disk = state.home.placement == Placement::on_disk;
  const bool keeps_values = format.wide() || model_.layout().separate_master();
  const auto values = static_cast<size_t>(format.slot_arrays);
  // Order of arrays: optimizer state, then parameters and gradient if they are on disk.
  std::vector<std::vector<BlockStore::Array>> all;
  for (const SegmentState* segment : segments) {
    std::vector<BlockStore::Array>& arrays = all.emplace_back();
    for (const BlockStore::Extent& slot : store_->slots(segment->stored)) arrays.push_back({slot, true, true});
    if (!on_disk) continue;
    float* const whole = keeps_values ? segment->values.mutable_data_ptr<float>() : nullptr;
    arrays.push_back({store_->parameters(segment->stored), true, true, whole});
    if (of(*segment).gradient_waits) arrays.push_back({store_->gradient(segment->stored), true, false});
  }
  store_->stream(lane, all, [&](const BlockStore::Tile& tile, std::span<std::byte* const> chunk) {
    SegmentState& segment = *segments[tile.part];
    const Progress& progress = of(segment);
    const int64_t begin = tile.chunk * kStateChunk;
    float* value = on_disk ? as_floats(chunk[values]) : segment.values.mutable_data_ptr<float>() + begin;
    const float* gradient = !progress.gradient_waits ? nullptr
                            : on_disk                ? as_floats(chunk[values + 1])
                                                     : segment.gradient.const_data_ptr<float>() + begin;
    apply_tile(format.packing, state, segment, {tile, value, gradient, chunk.first(values)}, *optimizer_,
               log_.from(progress.applied));
    fill_computing(state, segment, begin + tile.first, {value + tile.first, static_cast<size_t>(tile.count)});
  });
}

// For an optimizer that reads whole parameters.
void Residency::load_whole_updated(BlockState& state, Lane lane) {
  const bool on_disk = state.home.placement == Placement::on_disk, wide = model_.format().wide();
  const bool separate = model_.layout().separate_master();
  const int64_t flat = state.spec().flat_size;
  if (on_disk) {
    MemoryScope scope(AllocationKind::staging);
    const at::Tensor values = flat_buffer(flat, at::kFloat), gradients = flat_buffer(flat, at::kFloat);
    for (SegmentState& segment : state.segments) {
      segment.values = values.narrow(0, segment.own.begin, segment.own.size());
      segment.gradient = gradients.narrow(0, segment.own.begin, segment.own.size());
      store_->read(lane, {{{store_->parameters(segment.stored), segment.values.mutable_data_ptr<float>()},
                           {store_->gradient(segment.stored), segment.gradient.mutable_data_ptr<float>()}}});
    }
    const at::ScalarType type = model_.format().compute_type;
    if (!separate) state.computing = wide ? values : flat_buffer(computing_elements(state.spec(), type), type);
  }
  const SegmentState& first = state.segments.front();
  MEGALITH_ASSERT(waiting(first) == 1, "{}", state.spec().name);
  apply_update(model_.format(), state, *optimizer_, log_.from(of(first).applied).front());
  for (SegmentState& segment : state.segments) {
    if (!wide && !separate) model_.copy_to_computing(state, segment);
    if (!on_disk) continue;
    store_->write(lane, {{{store_->parameters(segment.stored), segment.values.mutable_data_ptr<float>()}}});
    segment.gradient.reset();
    if (!wide && !separate) segment.values.reset();
  }
  if (on_disk && !separate) model_.rebind(state, [] {});
  for (SegmentState& segment : state.segments) mark_updated(state, segment);
}

void Residency::mark_updated(BlockState& state, SegmentState& segment) {
  Progress& progress = of(segment);
  progress.applied = log_.end();
  if (std::exchange(progress.gradient_waits, false) && state.home.gradient_stays)
    zero(state.gradients.narrow(0, segment.flat.begin, segment.flat.size()));
}

void Residency::load(BlockId id, Lane lane) {
  BlockState& state = model_.at(id);
  MEGALITH_ASSERT(state.home.placement == Placement::on_disk && !state.computing.defined(), "{}", state.spec().name);
  allocate_parameters(state);
  std::vector<SegmentState*> loaded;
  for (SegmentState& segment : state.segments)
    if (segment.chosen) loaded.push_back(&segment);
  load_segments(state, loaded, lane);
}

void Residency::read(BlockState& state, std::span<SegmentState* const> segments, Lane lane) {
  std::vector<BlockStore::Whole> whole;
  std::vector<std::vector<BlockStore::Array>> staged;
  for (const SegmentState* segment : segments) {
    const BlockStore::Extent stored = store_->parameters(segment->stored);
    if (segment->values.defined()) whole.push_back({stored, segment->values.mutable_data_ptr<float>()});
    else staged.push_back({{stored, true, false}});
  }
  MEGALITH_ASSERT(whole.empty() || staged.empty());
  store_->read(lane, whole);
  store_->stream(lane, staged, [&](const BlockStore::Tile& tile, std::span<std::byte* const> chunk) {
    fill_computing(state, *segments[tile.part], tile.chunk * kStateChunk + tile.first,
                   {as_floats(chunk[0]) + tile.first, static_cast<size_t>(tile.count)});
  });
}

void Residency::evict(BlockId id) {
  BlockState& state = model_.at(id);
  // When the device copy is freed, the host copy may already be loaded for the next use.
  const bool frees_master = state.home.placement == Placement::on_disk && !(device_ && state.computing.defined());
  model_.rebind(state, [&] {
    state.computing.reset();
    for (SegmentState& segment : state.segments) {
      of(segment).present = false;
      if (frees_master) segment.values.reset();
    }
  });
}

void Residency::zero_gradient(BlockId id) {
  BlockState& state = model_.at(id);
  MemoryScope scope(AllocationKind::gradients);
  const int64_t flat = state.spec().flat_size;
  model_.rebind(state,
                [&] { state.gradients = device_ ? device_->empty({flat}, at::kFloat) : flat_buffer(flat, at::kFloat); });
  for (SegmentState& segment : state.segments) {
    if (!model_.layout().separate_master())
      segment.gradient = state.gradients.narrow(0, segment.own.begin, segment.own.size());
    // Experts that are not chosen yet are zeroed in load_experts, when a token chooses them.
    if (segment.chosen) zero(state.gradients.narrow(0, segment.flat.begin, segment.flat.size()));
  }
}

void Residency::offload_gradient(BlockId id, Lane lane) {
  BlockState& state = model_.at(id);
  std::vector<BlockStore::Whole> whole;
  for (const SegmentState& segment : state.segments)
    if (segment.chosen) whole.push_back({store_->gradient(segment.stored), segment.gradient.mutable_data_ptr<float>()});
  store_->write(lane, whole);
  for (SegmentState& segment : state.segments) segment.gradient.reset();
  // With a separate master, reduce or download has already freed the whole gradient.
  if (!model_.layout().separate_master()) model_.rebind(state, [&] { state.gradients.reset(); });
}

void Residency::offload_input(BlockId id, MicroId micro, Lane lane, const at::Tensor& input) {
  MEGALITH_ASSERT(input.is_contiguous());
  const BlockId stored = model_.at(id).segments.front().stored;
  store_->stream(lane, {{store_->input(stored, micro, static_cast<int64_t>(input.nbytes())), false, true}},
                 chunks_of(input, [](std::span<std::byte> from, std::byte* to) { std::ranges::copy(from, to); }));
}

void Residency::reload_input(BlockId id, MicroId micro, Lane lane, const at::Tensor& input) {
  const BlockId stored = model_.at(id).segments.front().stored;
  store_->stream(
      lane, {{store_->input(stored, micro, static_cast<int64_t>(input.nbytes())), true, false}},
      chunks_of(input, [](std::span<std::byte> to, std::byte* from) { std::copy_n(from, to.size(), to.data()); }));
}

void Residency::load_experts(int64_t layer, std::span<const int64_t> begin) {
  BlockState& state = model_.at(static_cast<BlockId>(layer) + 1);
  std::vector<SegmentState*> loaded;
  for (SegmentState& segment : state.segments) {
    const auto expert = static_cast<size_t>(segment.expert);
    if (segment.expert < 0 || begin[expert + 1] == begin[expert]) continue;
    if (!of(segment).present) loaded.push_back(&segment);
    if (std::exchange(segment.chosen, true) || !segment.gradient.defined()) continue;
    if (state.home.placement == Placement::on_disk) zero(segment.gradient);  // zero_gradient skipped it
  }
  load_segments(state, loaded, Lane::compute);
  experts_called_ += std::ssize(loaded);
}

DiskUse Residency::disk_use() const {
  return store_ ? DiskUse{store_->bytes_read(), store_->bytes_written(), experts_called_} : DiskUse{};
}

void Residency::record_update(const Update& update) {
  log_.add(update);
  int64_t oldest = log_.end();
  for (BlockState& state : model_) {
    const bool spilled = state.home.here && state.home.placement != Placement::in_memory;
    for (const SegmentState& segment : state.segments) {
      Progress& progress = of(segment);
      if (!spilled) progress.applied = log_.end();
      else progress.gradient_waits = segment.chosen;
      oldest = std::min(oldest, progress.applied);
    }
  }
  log_.forget_before(oldest);
}

void Residency::discard_gradients() {
  for (BlockState& state : model_)
    if (state.home.placement == Placement::optimizer_on_disk && state.home.gradient_stays) zero(state.gradients);
}

}  // namespace megalith
