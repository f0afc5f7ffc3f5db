#include "engine/block_store.h"

#include <algorithm>

#include "base/chores.h"
#include "base/error.h"
#include "engine/chunk_stream.h"
#include "memory/allocator.h"
#include "memory/disk_speed.h"
#include "model/tensor_ops.h"

namespace megalith {
namespace {

constexpr int64_t kFloatBytes = sizeof(float);
static_assert(kStateChunk * kFloatBytes == kSpillChunk, "float32 arrays fill the units of their files");
int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

std::span<std::byte> bytes_of(float* data, int64_t elements) {
  return std::as_writable_bytes(std::span(data, static_cast<size_t>(elements)));
}

// Elements that a disk transfer of `elements` moves, with padding.
int64_t padded(int64_t elements) { return round_up(elements, kDiskAlign / kFloatBytes); }

// Cuts all extents into pieces of one file unit.
std::vector<SpillPiece> units_of(std::span<const BlockStore::Whole> all) {
  std::vector<SpillPiece> units;
  for (const BlockStore::Whole& one : all) {
    const std::span<std::byte> bytes = bytes_of(one.buffer, padded(one.extent.array.elements));
    const auto unit = static_cast<size_t>(one.extent.file->unit());
    for (size_t at = 0; at < bytes.size(); at += unit)
      units.push_back({one.extent.file, one.extent.offset + static_cast<int64_t>(at),
                       bytes.subspan(at, std::min(unit, bytes.size() - at))});
  }
  return units;
}

}  // namespace

at::Tensor disk_buffer(int64_t elements) {
  at::Tensor whole = tensor::empty({padded(elements) + kDiskAlign / kFloatBytes}, at::kFloat);
  const auto address = reinterpret_cast<uintptr_t>(whole.mutable_data_ptr<float>());
  const int64_t skip = round_up(static_cast<int64_t>(address), kDiskAlign) - static_cast<int64_t>(address);
  return whole.narrow(0, skip / kFloatBytes, elements);
}

int64_t StoredArray::chunks() const { return (elements + kStateChunk - 1) / kStateChunk; }

int64_t StoredArray::chunk_bytes(int64_t chunk) const {
  return round_up(element_bytes * std::min(kStateChunk, elements - chunk * kStateChunk) + chunk_extra, kDiskAlign);
}

int64_t StoredArray::chunk_stride() const { return round_up(element_bytes * kStateChunk + chunk_extra, kDiskAlign); }

StoredArray stored_slot(const SlotSize& slot) {
  return {slot.elements, packed_bytes(slot.packing), slot.scale_bytes()};
}

BlockStore::BlockStore(const std::filesystem::path& folder, const std::vector<StoredBlock>& blocks, Staging staging)
    : folder_(folder), staging_(staging) {
  // Bytes of a unit. Any chunk of any array fits into one unit. An array with several chunks uses one unit for each.
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
  MEGALITH_ASSERT((bytes + kFloatBytes - 1) / kFloatBytes <= extent.array.elements, "{} bytes do not fit", bytes);
  extent.array.elements = (bytes + kFloatBytes - 1) / kFloatBytes;
  return extent;
}

void BlockStore::read(Lane lane, std::span<const Whole> all) { read_whole(queue(lane), all); }

void BlockStore::write(Lane lane, std::span<const Whole> all) { write_whole(queue(lane), all); }

void read_whole(DiskQueue& disk, std::span<const BlockStore::Whole> all) {
  const std::vector<SpillPiece> units = units_of(all);
  Flight flight(disk);
  std::vector<DiskQueue::Ticket> coming;
  for (const SpillPiece& unit : units)
    coming.push_back(disk.read(*unit.file, unit.offset, unit.bytes, DiskQueue::Checks::caller));
  HandedOver checks;
  for (size_t i = 0; i < units.size(); i++) {
    disk.wait(coming[i]);
    checks.add([unit = &units[i]] { unit->check(); });
  }
  checks.wait_all();
}

void write_whole(DiskQueue& disk, std::span<const BlockStore::Whole> all) {
  const std::vector<SpillPiece> units = units_of(all);
  Flight flight(disk);
  HandedOver notes;
  for (const SpillPiece& unit : units) notes.add([&unit] { unit.remember(); });
  for (int64_t i = 0; i < notes.size(); i++) {
    notes.wait(i);
    const SpillPiece& unit = units[static_cast<size_t>(i)];
    disk.write(*unit.file, unit.offset, unit.bytes, DiskQueue::Checks::caller);
  }
  disk.wait_all();
}

int64_t staging_bytes(const std::vector<std::vector<StoredArray>>& staged, Staging staging) {
  int64_t bytes = 0;
  for (const std::vector<StoredArray>& kind : staged) {
    int64_t chunks = 0, stride = 0;
    for (const StoredArray& array : kind) {
      chunks += array.chunks();
      stride = std::max(stride, array.chunk_stride());
    }
    bytes += ChunkStream::slots(chunks, staging) * stride;
  }
  return bytes;
}

void BlockStore::stream(Lane lane, const std::vector<Array>& arrays, const ChunkWork& work) {
  const TileWork by_chunk = [&](const Tile& chunk, std::span<std::byte* const> pointers) { work(chunk.chunk, pointers); };
  const std::vector<std::vector<Array>> parts{arrays};
  ChunkStream(queue(lane), parts, ChunkStream::By::caller, staging_, by_chunk).run();
}

void BlockStore::stream(Lane lane, const std::vector<std::vector<Array>>& parts, const TileWork& work) {
  ChunkStream(queue(lane), parts, ChunkStream::By::anyone, staging_, work).run();
}

}  // namespace megalith
