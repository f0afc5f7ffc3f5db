#include "engine/block_store.h"

#include <ATen/ops/empty.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "base/chores.h"
#include "base/error.h"
#include "memory/allocator.h"
#include "memory/disk_speed.h"

namespace megalith {
namespace {

constexpr int64_t kFloat = sizeof(float);
static_assert(kStateChunk * kFloat == kSpillChunk, "float32 arrays fill the units of their files");
constexpr int64_t kSlots = 12;  // chunks of an array in memory while it streams: what a disk moves between two products
constexpr int64_t kAhead = 5;   // of them on their way in; the others are worked on or on their way out

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

std::span<std::byte> bytes_of(float* data, int64_t elements) {
  return std::as_writable_bytes(std::span(data, static_cast<size_t>(elements)));
}

// Elements of a transfer that holds `elements`.
int64_t padded(int64_t elements) { return round_up(elements, kDiskAlign / kFloat); }

// A unit of a file and where it is in memory.
struct Unit {
  SpillFile* file = nullptr;
  int64_t offset = 0;
  std::span<std::byte> bytes;
};

std::vector<Unit> units_of(std::span<const BlockStore::Whole> all) {
  std::vector<Unit> units;
  for (const BlockStore::Whole& one : all) {
    const std::span<std::byte> bytes = bytes_of(one.buffer, padded(one.extent.array.elements));
    const auto unit = static_cast<size_t>(one.extent.file->unit());
    for (size_t at = 0; at < bytes.size(); at += unit)
      units.push_back({one.extent.file, one.extent.offset + static_cast<int64_t>(at),
                       bytes.subspan(at, std::min(unit, bytes.size() - at))});
  }
  return units;
}

// Ends what is in flight whatever happens: the disk uses buffers that are somebody else's soon.
class Flight {
 public:
  explicit Flight(DiskQueue& disk) : disk_(disk) {}
  ~Flight() {
    try {
      disk_.wait_all();
    } catch (const Fault&) {  // who wants to know asks before
    }
  }
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

 private:
  DiskQueue& disk_;
};

}  // namespace

at::Tensor disk_buffer(int64_t elements) {
  at::Tensor whole = at::empty({padded(elements) + kDiskAlign / kFloat}, at::kFloat);
  const auto address = reinterpret_cast<uintptr_t>(whole.mutable_data_ptr<float>());
  const int64_t skip = round_up(static_cast<int64_t>(address), kDiskAlign) - static_cast<int64_t>(address);
  return whole.narrow(0, skip / kFloat, elements);
}

int64_t StoredArray::chunks() const { return (elements + kStateChunk - 1) / kStateChunk; }

int64_t StoredArray::chunk_bytes(int64_t chunk) const {
  return round_up(element_bytes * std::min(kStateChunk, elements - chunk * kStateChunk) + chunk_extra, kDiskAlign);
}

int64_t StoredArray::chunk_stride() const { return round_up(element_bytes * kStateChunk + chunk_extra, kDiskAlign); }

StoredArray stored_slot(const StateLayout& layout) {
  return {layout.elements(), packed_bytes(layout.packing()), layout.scale_bytes()};
}

BlockStore::BlockStore(const std::filesystem::path& folder, const std::vector<StoredBlock>& blocks) : folder_(folder) {
  // Bytes of a unit: a chunk of any array fits, and where one has several they follow each other.
  int64_t state_unit = kDiskAlign, optimizer_unit = kDiskAlign;
  const auto fit = [](int64_t& unit, const StoredArray& array) {
    if (array.elements > 0) unit = std::max(unit, array.chunks() > 1 ? array.chunk_stride() : array.chunk_bytes(0));
  };
  for (const StoredBlock& block : blocks) {
    fit(state_unit, block.parameters);
    fit(state_unit, block.gradient);
    for (const StoredArray& slot : block.slots) fit(optimizer_unit, slot);
  }
  int64_t parameters = 0, gradients = 0, optimizer = 0, inputs = 0;  // bytes of each file
  const auto place = [](int64_t& end, const StoredArray& array, int64_t unit) {
    Extent extent{nullptr, end, array};
    end += array.chunks() * unit;
    return extent;
  };
  for (const StoredBlock& block : blocks) {
    Places& places = places_.emplace_back();
    places.parameters = place(parameters, block.parameters, state_unit);
    places.gradient = place(gradients, block.gradient, state_unit);
    for (const StoredArray& slot : block.slots) places.slots.push_back(place(optimizer, slot, optimizer_unit));
    for (const StoredArray& input : block.inputs) places.inputs.push_back(place(inputs, input, kSpillChunk));
  }
  bytes_ = parameters + gradients + optimizer + inputs;
  folder_.require(bytes_);
  if (parameters > 0) parameters_ = folder_.make("parameters", parameters, state_unit);
  if (gradients > 0) gradients_ = folder_.make("gradients", gradients, state_unit);
  if (optimizer > 0) optimizer_ = folder_.make("optimizer", optimizer, optimizer_unit);
  if (inputs > 0) inputs_ = folder_.make("inputs", inputs);
  for (Places& places : places_) {
    places.parameters.file = parameters_.get();
    places.gradient.file = gradients_.get();
    for (Extent& slot : places.slots) slot.file = optimizer_.get();
    for (Extent& input : places.inputs) input.file = inputs_.get();
  }
  for (auto& queue : queues_) queue = make_disk_queue(folder_.way(), kSpillDepth);
}

int64_t BlockStore::bytes_read() const {
  int64_t sum = 0;
  for (const auto& queue : queues_) sum += queue->bytes_read();
  return sum;
}

int64_t BlockStore::bytes_written() const {
  int64_t sum = 0;
  for (const auto& queue : queues_) sum += queue->bytes_written();
  return sum;
}

BlockStore::Extent BlockStore::input(BlockId block, MicroId micro, int64_t bytes) const {
  Extent extent = places_[static_cast<size_t>(block)].inputs.at(static_cast<size_t>(micro));
  MEGALITH_ASSERT((bytes + kFloat - 1) / kFloat <= extent.array.elements, "{} bytes to park", bytes);
  extent.array.elements = (bytes + kFloat - 1) / kFloat;
  return extent;
}

void BlockStore::read(Lane lane, std::span<const Whole> all) {
  DiskQueue& disk = queue(lane);
  const std::vector<Unit> units = units_of(all);
  Flight flight(disk);
  std::vector<DiskQueue::Ticket> coming;
  for (const Unit& unit : units) coming.push_back(disk.read(*unit.file, unit.offset, unit.bytes, DiskQueue::Checks::caller));
  HandedOver checks;
  for (size_t i = 0; i < units.size(); i++) {
    disk.wait(coming[i]);
    checks.add([unit = &units[i]] { unit->file->check(unit->offset, unit->bytes); });
  }
  checks.wait_all();
}

void BlockStore::write(Lane lane, std::span<const Whole> all) {
  DiskQueue& disk = queue(lane);
  const std::vector<Unit> units = units_of(all);
  Flight flight(disk);
  HandedOver notes;
  for (const Unit& unit : units) notes.add([&unit] { unit.file->remember(unit.offset, unit.bytes); });
  for (int64_t i = 0; i < notes.size(); i++) {
    notes.wait(i);
    const Unit& unit = units[static_cast<size_t>(i)];
    disk.write(*unit.file, unit.offset, unit.bytes, DiskQueue::Checks::caller);
  }
  disk.wait_all();
}

int64_t BlockStore::staging_bytes(const std::vector<std::vector<StoredArray>>& staged) {
  int64_t bytes = 0;
  for (const std::vector<StoredArray>& kind : staged) {
    int64_t chunks = 0, stride = 0;
    for (const StoredArray& array : kind) {
      chunks += array.chunks();
      stride = std::max(stride, array.chunk_stride());
    }
    bytes += std::min(kSlots, chunks) * stride;
  }
  return bytes;
}

void BlockStore::stream(Lane lane, const std::vector<Array>& arrays, const ChunkWork& work) {
  stream(lane, std::vector<std::vector<Array>>{arrays}, By::lane,
         [&](size_t, int64_t chunk, std::span<std::byte* const> pointers) { work(chunk, pointers); });
}

void BlockStore::stream(Lane lane, const std::vector<std::vector<Array>>& parts, const PartWork& work) {
  stream(lane, parts, By::anyone, work);
}

void BlockStore::stream(Lane lane, const std::vector<std::vector<Array>>& parts, By by, const PartWork& work) {
  struct Turn {
    size_t part;
    int64_t chunk;
  };
  std::vector<Turn> turns;
  size_t kinds = 0;
  for (size_t p = 0; p < parts.size(); p++) {
    MEGALITH_ASSERT(!parts[p].empty());
    kinds = std::max(kinds, parts[p].size());
    for (int64_t chunk = 0; chunk < parts[p].front().extent.array.chunks(); chunk++) turns.push_back({p, chunk});
  }
  MemoryScope scope(AllocationKind::staging);
  std::vector<at::Tensor> staging(kinds);
  std::vector<int64_t> strides(kinds, 0);  // bytes: of the largest chunk of a kind that is staged
  for (const std::vector<Array>& arrays : parts)
    for (size_t a = 0; a < arrays.size(); a++) {
      const StoredArray& array = arrays[a].extent.array;
      MEGALITH_ASSERT(array.elements == arrays.front().extent.array.elements, "arrays stream in step");
      if (!arrays[a].whole) strides[a] = std::max(strides[a], array.chunk_stride());
    }
  const int64_t slots = std::min(std::ssize(turns), kSlots);
  for (size_t a = 0; a < kinds; a++)
    if (strides[a] > 0) staging[a] = disk_buffer(slots * strides[a] / kFloat);
  const auto arrays_of = [&](int64_t turn) -> const std::vector<Array>& {
    return parts[turns[static_cast<size_t>(turn)].part];
  };
  const auto unit_of = [&](int64_t turn, size_t a) {
    const auto [part, chunk] = turns[static_cast<size_t>(turn)];
    const Array& it = parts[part][a];
    auto* const first = reinterpret_cast<std::byte*>(it.whole ? it.whole : staging[a].mutable_data_ptr<float>());
    const int64_t at = it.whole ? chunk * it.extent.array.chunk_stride() : turn % kSlots * strides[a];
    return Unit{it.extent.file, it.extent.offset + chunk * it.extent.file->unit(),
                std::span(first + at, static_cast<size_t>(it.extent.array.chunk_bytes(chunk)))};
  };
  const auto do_turn = [&](int64_t turn) {
    const std::vector<Array>& arrays = arrays_of(turn);
    std::vector<std::byte*> pointers;
    for (size_t a = 0; a < arrays.size(); a++) {
      const Unit unit = unit_of(turn, a);
      if (arrays[a].reads) unit.file->check(unit.offset, unit.bytes);
      pointers.push_back(unit.bytes.data());
    }
    const auto [part, chunk] = turns[static_cast<size_t>(turn)];
    work(part, chunk, pointers);
    for (size_t a = 0; a < arrays.size(); a++) {
      const Unit unit = unit_of(turn, a);
      if (arrays[a].writes) unit.file->remember(unit.offset, unit.bytes);
    }
  };
  DiskQueue& disk = queue(lane);
  std::vector<std::vector<DiskQueue::Ticket>> coming(kSlots), going(kSlots);  // by turn modulo their number
  const auto settle = [&](std::vector<DiskQueue::Ticket>& tickets) {
    for (DiskQueue::Ticket ticket : tickets) disk.wait(ticket);
    tickets.clear();
  };
  Flight flight(disk);
  HandedOver chores;  // by turn
  int64_t gone = 0;   // turns whose chunks are on their way out
  const auto go = [&] {
    if (by == By::anyone) chores.wait(gone);
    const std::vector<Array>& arrays = arrays_of(gone);
    for (size_t a = 0; a < arrays.size(); a++)
      if (arrays[a].writes) {
        const Unit unit = unit_of(gone, a);
        going[static_cast<size_t>(gone % kSlots)].push_back(
            disk.write(*unit.file, unit.offset, unit.bytes, DiskQueue::Checks::caller));
      }
    gone++;
  };
  const auto come = [&](int64_t turn) {
    while (gone <= turn - kSlots) go();
    settle(going[static_cast<size_t>(turn % kSlots)]);  // of the chunk that was in this place
    const std::vector<Array>& arrays = arrays_of(turn);
    for (size_t a = 0; a < arrays.size(); a++)
      if (arrays[a].reads) {
        const Unit unit = unit_of(turn, a);
        coming[static_cast<size_t>(turn % kSlots)].push_back(
            disk.read(*unit.file, unit.offset, unit.bytes, DiskQueue::Checks::caller));
      }
  };
  for (int64_t turn = 0; turn < std::min(kAhead, std::ssize(turns)); turn++) come(turn);
  for (int64_t turn = 0; turn < std::ssize(turns); turn++) {
    if (turn + kAhead < std::ssize(turns)) come(turn + kAhead);
    settle(coming[static_cast<size_t>(turn % kSlots)]);
    if (by == By::lane) {
      do_turn(turn);
      go();
      continue;
    }
    chores.add([&do_turn, turn] {
      // Whoever does it.
      c10::InferenceMode no_graph;
      MemoryScope workspace(AllocationKind::workspace);
      TierScope home(Tier::host);
      do_turn(turn);
    });
    while (gone <= turn && chores.done(gone)) go();
  }
  while (gone < std::ssize(turns)) go();
  disk.wait_all();
}

}  // namespace megalith
