// Collectives between members of one host, entirely in shared memory. Each member does the work for its own slice: it
// sums that slice over all members, in their order.
#include <cstring>

#include "base/error.h"
#include "comm/channel_state.h"
#include "comm/sums.h"

namespace megalith {

int64_t rounds_of(int64_t bytes) { return (bytes + kWindow - 1) / kWindow; }

Round round_of(std::span<const int64_t> cuts, int64_t round, int64_t rounds) {
  Round parts;
  int64_t packed = 0;
  for (size_t p = 0; p + 1 < cuts.size(); p++) {
    const int64_t count = cuts[p + 1] - cuts[p];
    const int64_t begin = count * round / rounds, end = count * (round + 1) / rounds;
    parts.count.push_back(end - begin);
    parts.in_whole.push_back(cuts[p] + begin);
    parts.in_window.push_back(packed);
    packed += end - begin;
  }
  return parts;
}

// Needs one meeting only: there is little to sum, so every member sums everything.
void Channel::State::sum_small(Buffer values) {
  std::memcpy(turn_of(place).window, values.data, static_cast<size_t>(values.bytes()));
  turn_of(place).posted.bytes = values.bytes();
  meet();
  std::vector<const std::byte*> sources;
  for (int p : local()) {
    MEGALITH_ASSERT(turn_of(p).posted.bytes == values.bytes(),
                    "{} on channel {}: {} bytes here, {} at rank {}", doing, name, values.bytes(),
                    turn_of(p).posted.bytes, members[static_cast<size_t>(p)]);
    sources.push_back(turn_of(p).window);
  }
  sum(values.element, sources, std::span(&values.data, 1), values.count);
  turn++;
}

void Channel::State::work_in_place(Collective kind, Element element, std::span<const int64_t> cuts,
                                   const std::vector<std::byte*>& buffers) {
  const int64_t width = size_of(element);
  const size_t me = static_cast<size_t>(place);
  if (kind == Collective::all_gather) {
    for (size_t p = 0; p < size(); p++) {
      const int64_t at = cuts[p] * width;
      if (p != me) std::memcpy(buffers[me] + at, buffers[p] + at, static_cast<size_t>(cuts[p + 1] * width - at));
    }
    return;
  }
  std::vector<const std::byte*> sources;
  std::vector<std::byte*> destinations;
  for (size_t p = 0; p < size(); p++) {
    std::byte* const slice = buffers[p] + cuts[me] * width;
    sources.push_back(slice);
    if (kind == Collective::all_reduce || p == me) destinations.push_back(slice);
  }
  sum(element, sources, destinations, cuts[me + 1] - cuts[me]);
}

// In each round, each member copies into its window the data that other members will sum or take. The members meet, and
// then copy the results. A member's own slice is summed directly from and into its own buffer.
void Channel::State::work_through_windows(Collective kind, Buffer whole, std::span<const int64_t> cuts) {
  const int64_t width = size_of(whole.element);
  const size_t me = static_cast<size_t>(place);
  const int64_t rounds = rounds_of(whole.bytes());
  for (int64_t round = 0; round < rounds; round++, turn++) {
    const Round part = round_of(cuts, round, rounds);
    const auto window = [&](size_t member, size_t slice) {
      return turn_of(static_cast<int>(member)).window + part.in_window[slice] * width;
    };
    const auto own = [&](size_t slice) { return whole.data + part.in_whole[slice] * width; };
    const auto bytes = [&](size_t slice) { return static_cast<size_t>(part.count[slice] * width); };
    if (kind == Collective::all_gather) {
      std::memcpy(window(me, me), own(me), bytes(me));
    } else {
      for (size_t p = 0; p < size(); p++) {
        if (p != me) std::memcpy(window(me, p), own(p), bytes(p));
      }
    }
    meet();
    if (kind != Collective::all_gather) {
      std::vector<const std::byte*> sources;
      for (size_t p = 0; p < size(); p++) sources.push_back(p == me ? own(me) : window(p, me));
      std::vector<std::byte*> destinations{own(me)};
      if (kind == Collective::all_reduce) destinations.push_back(window(me, me));
      sum(whole.element, sources, destinations, part.count[me]);
    }
    if (kind == Collective::reduce_scatter) continue;
    if (kind == Collective::all_reduce) meet();
    for (size_t p = 0; p < size(); p++) {
      if (p != me) std::memcpy(own(p), window(p, p), bytes(p));
    }
  }
}

}  // namespace megalith
