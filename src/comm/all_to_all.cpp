// Every member has something for every other: neighbours fetch it where it lies, or round by round from windows;
// between hosts it goes straight from buffer to buffer.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "comm/channel_state.h"

namespace megalith {

void Channel::State::all_to_all(std::span<const std::byte> send, std::span<const int64_t> send_cuts,
                                std::span<std::byte> receive, std::span<const int64_t> receive_cuts) {
  const size_t me = static_cast<size_t>(place);
  const auto outgoing = [&](size_t p) {
    return send.subspan(static_cast<size_t>(send_cuts[p]), static_cast<size_t>(send_cuts[p + 1] - send_cuts[p]));
  };
  const auto incoming = [&](size_t p) {
    return receive.subspan(static_cast<size_t>(receive_cuts[p]),
                           static_cast<size_t>(receive_cuts[p + 1] - receive_cuts[p]));
  };
  MEGALITH_ASSERT(outgoing(me).size() == incoming(me).size(),
                  "{} on channel {}: {} bytes to itself, {} from itself", doing, name, outgoing(me).size(),
                  incoming(me).size());
  std::copy(outgoing(me).begin(), outgoing(me).end(), incoming(me).begin());
  if (size() == 1) return;

  Transfers transfers(*world.mpi);
  for (size_t p = 0; p < size(); p++) {
    if (host_of[p] == here) continue;
    transfers.receive(incoming(p), members[p], tag);
    transfers.send(outgoing(p), members[p], tag);
  }

  // Neighbours tell each other where everything lies.
  Turn& own = turn_of(place);
  own.posted = {std::ssize(send), send.empty() ? 0 : world.offset_in_region(send.data(), std::ssize(send))};
  std::memcpy(own.window, send_cuts.data(), send_cuts.size_bytes());
  meet();
  struct Sender {
    size_t place;
    std::vector<int64_t> cuts;
    std::byte* buffer;
  };
  std::vector<Sender> senders;
  bool shared = true;
  int64_t largest = 0;
  for (int p : local()) {
    Turn& theirs = turn_of(p);
    std::vector<int64_t> cuts(size() + 1);
    std::memcpy(cuts.data(), theirs.window, cuts.size() * sizeof(int64_t));
    MEGALITH_ASSERT(cuts[me + 1] - cuts[me] == std::ssize(incoming(static_cast<size_t>(p))),
                    "{} on channel {}: rank {} sends {} bytes, rank {} expects {}", doing, name,
                    members[static_cast<size_t>(p)], cuts[me + 1] - cuts[me], world.rank,
                    incoming(static_cast<size_t>(p)).size());
    shared &= theirs.posted.offset >= 0;
    largest = std::max(largest, theirs.posted.bytes);
    std::byte* const buffer = shared && theirs.posted.bytes > 0
                                  ? world.in_region_of(members[static_cast<size_t>(p)], theirs.posted.offset)
                                  : nullptr;
    senders.push_back({static_cast<size_t>(p), std::move(cuts), buffer});
  }
  turn++;

  if (shared) {
    for (const Sender& sender : senders) {
      const std::span<std::byte> to = incoming(sender.place);
      if (sender.place != me && !to.empty()) std::memcpy(to.data(), sender.buffer + sender.cuts[me], to.size());
    }
    meet();
  } else {
    const int64_t rounds = rounds_of(largest);
    for (int64_t round = 0; round < rounds; round++, turn++) {
      const Round parts = round_of(send_cuts, round, rounds);
      for (int p : local()) {
        const size_t q = static_cast<size_t>(p);
        if (p == place) continue;
        std::memcpy(turn_of(place).window + parts.in_window[q], send.data() + parts.in_whole[q],
                    static_cast<size_t>(parts.count[q]));
      }
      meet();
      for (const Sender& sender : senders) {
        if (sender.place == me) continue;
        const Round theirs = round_of(sender.cuts, round, rounds);
        std::memcpy(incoming(sender.place).data() + (theirs.in_whole[me] - sender.cuts[me]),
                    turn_of(static_cast<int>(sender.place)).window + theirs.in_window[me],
                    static_cast<size_t>(theirs.count[me]));
      }
    }
  }
  transfers.wait(world.waits, doing, name, -1);
}

}  // namespace megalith
