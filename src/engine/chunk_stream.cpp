#include "engine/chunk_stream.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "base/error.h"
#include "memory/allocator.h"

namespace megalith {
namespace {

constexpr int64_t kElementBytes = sizeof(float);
constexpr int64_t kTileElements = kSpillTile / kElementBytes;

bool plain(const StoredArray& array) { return array.element_bytes == kElementBytes && array.chunk_extra == 0; }

}  // namespace

Flight::~Flight() {
  try {
    disk_.wait_all();
  } catch (const Fault&) {  // a caller that wants to see the fault waits before this
  }
}

ChunkStream::ChunkStream(DiskQueue& disk, const std::vector<std::vector<Array>>& parts, By by, Staging staging,
                         const BlockStore::TileWork& work)
    : disk_(disk), parts_(parts), by_(by), work_(work), flight_(disk) {
  size_t kinds = 0;
  for (size_t p = 0; p < parts.size(); p++) {
    MEGALITH_ASSERT(!parts[p].empty());
    kinds = std::max(kinds, parts[p].size());
    for (int64_t chunk = 0; chunk < parts[p].front().extent.array.chunks(); chunk++) turns_.push_back({p, chunk, 0});
  }
  slots_ = slots(turns(), staging);
  scarce_ = slots_ < slots(turns(), Staging::ample);
  coming_.resize(static_cast<size_t>(slots_));
  going_.resize(static_cast<size_t>(slots_));
  strides_.resize(kinds, 0);
  for (const std::vector<Array>& arrays : parts)
    for (size_t a = 0; a < arrays.size(); a++) {
      const StoredArray& array = arrays[a].extent.array;
      MEGALITH_ASSERT(array.elements == arrays.front().extent.array.elements, "arrays of one stream differ in length");
      if (!arrays[a].whole) strides_[a] = std::max(strides_[a], array.chunk_stride());
    }
  int64_t bytes = 0;
  for (const int64_t stride : strides_) {
    places_.push_back(bytes);
    bytes += slots_ * stride;
  }
  // One buffer for all kinds: a large buffer is on huge pages, so the kernel handles fewer pages in each transfer.
  MemoryScope scope(AllocationKind::staging);
  if (bytes > 0) staging_ = disk_buffer(bytes / kElementBytes);
}

int64_t ChunkStream::slots(int64_t chunks, Staging staging) {
  constexpr int64_t kFewest = 4, kMost = 12;
  return std::min(chunks, staging == Staging::ample ? kMost : std::clamp(chunks / 4, kFewest, kMost));
}

SpillPiece ChunkStream::chunk_of(int64_t number, size_t a) const {
  const auto& [part, chunk, chores] = turn(number);
  const Array& it = parts_[part][a];
  auto* const first = reinterpret_cast<std::byte*>(it.whole ? it.whole : staging_.mutable_data_ptr<float>());
  const int64_t at = it.whole ? chunk * it.extent.array.chunk_stride() : places_[a] + number % slots_ * strides_[a];
  return {it.extent.file, it.extent.offset + chunk * it.extent.file->unit(),
          {first + at, static_cast<size_t>(it.extent.array.chunk_bytes(chunk))}};
}

int64_t ChunkStream::elements_of(int64_t number) const {
  return std::min(kStateChunk, arrays_of(number).front().extent.array.elements - turn(number).chunk * kStateChunk);
}

int64_t ChunkStream::tile_elements(int64_t number) const {
  const std::vector<Array>& arrays = arrays_of(number);
  const bool all_plain = std::ranges::all_of(arrays, [](const Array& array) { return plain(array.extent.array); });
  return by_ == By::anyone && all_plain ? kTileElements : kStateChunk;
}

void ChunkStream::work(int64_t number, int64_t first, int64_t count) const {
  const std::vector<Array>& arrays = arrays_of(number);
  const int64_t elements = elements_of(number);
  const bool whole = count == elements, last = first + count == elements;
  std::vector<std::byte*> pointers;
  std::vector<SpillPiece> tiles;
  for (size_t a = 0; a < arrays.size(); a++) {
    SpillPiece piece = chunk_of(number, a);
    pointers.push_back(piece.bytes.data());
    // The last tile includes the padding of the chunk.
    if (!whole)
      piece = {piece.file, piece.offset + first * kElementBytes,
               last ? piece.bytes.subspan(first * kElementBytes)
                    : piece.bytes.subspan(first * kElementBytes, count * kElementBytes)};
    if (arrays[a].reads) piece.check();
    tiles.push_back(piece);
  }
  work_({turn(number).part, turn(number).chunk, first, count}, pointers);
  for (size_t a = 0; a < arrays.size(); a++)
    if (arrays[a].writes) tiles[a].remember();
}

void ChunkStream::settle(std::vector<DiskQueue::Ticket>& tickets) {
  for (DiskQueue::Ticket ticket : tickets) disk_.wait(ticket);
  tickets.clear();
}

void ChunkStream::come(int64_t number) {
  while (gone_ <= number - slots_) go();
  const auto slot = static_cast<size_t>(number % slots_);
  settle(going_[slot]);  // writes of the chunk that used this slot before
  for (size_t a = 0; a < arrays_of(number).size(); a++) {
    if (!arrays_of(number)[a].reads) continue;
    const SpillPiece chunk = chunk_of(number, a);
    coming_[slot].push_back(disk_.read(*chunk.file, chunk.offset, chunk.bytes, DiskQueue::Checks::caller));
  }
}

void ChunkStream::hand_over(int64_t number) {
  const int64_t elements = elements_of(number);
  const int64_t step = tile_elements(number);
  for (int64_t first = 0; first < elements; first += step) {
    const int64_t count = std::min(step, elements - first);
    if (by_ == By::caller) {
      work(number, first, count);
      continue;
    }
    chores_.add([this, number, first, count] {  // may run on any thread
      c10::InferenceMode no_graph;
      MemoryScope workspace(AllocationKind::workspace);
      TierScope home(Tier::host);
      work(number, first, count);
    });
  }
  turns_[static_cast<size_t>(number)].chores = chores_.size();
}

bool ChunkStream::worked_on(int64_t number) const {
  for (int64_t chore = chores_before(number); chore < turn(number).chores; chore++)
    if (!chores_.done(chore)) return false;
  return true;
}

void ChunkStream::go() {
  for (int64_t chore = chores_before(gone_); chore < turn(gone_).chores; chore++)
    if (scarce_) chores_.finish(chore);
    else chores_.wait(chore);
  for (size_t a = 0; a < arrays_of(gone_).size(); a++) {
    if (!arrays_of(gone_)[a].writes) continue;
    const SpillPiece chunk = chunk_of(gone_, a);
    going_[static_cast<size_t>(gone_ % slots_)].push_back(
        disk_.write(*chunk.file, chunk.offset, chunk.bytes, DiskQueue::Checks::caller));
  }
  gone_++;
}

void ChunkStream::run() {
  for (int64_t number = 0; number < std::min(ahead(), turns()); number++) come(number);
  for (int64_t number = 0; number < turns(); number++) {
    if (number + ahead() < turns()) come(number + ahead());
    settle(coming_[static_cast<size_t>(number % slots_)]);
    hand_over(number);
    while (gone_ <= number && worked_on(gone_)) go();
  }
  while (gone_ < turns()) go();
  disk_.wait_all();
}

}  // namespace megalith
