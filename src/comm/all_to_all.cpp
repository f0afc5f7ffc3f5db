// Every member has bytes for every other member. Members on one host copy them directly from the sender's buffer, or
// round by round from windows. Between hosts the bytes go through MPI, from buffer to buffer.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "comm/channel_state.h"

namespace megalith {
namespace {

// Bytes in slices, one per member.
template <class Byte>
struct Slices {
  std::span<Byte> whole;
  std::span<const int64_t> cuts;
  std::span<Byte> of(size_t member) const {
    return whole.subspan(static_cast<size_t>(cuts[member]), static_cast<size_t>(cuts[member + 1] - cuts[member]));
  }
};

// A member of this host that sends to this one.
struct Sender {
  size_t place;
  std::vector<int64_t> cuts;
  std::byte* buffer;  // address in this process; null if it is not shared or empty
};

struct Senders {
  std::vector<Sender> all;
  bool shared = true;   // all buffers are in shared regions
  int64_t largest = 0;  // bytes
};

using Sent = Slices<const std::byte>;
using Received = Slices<std::byte>;

// Members of this host exchange the positions of their buffers and slices. Ends the turn.
Senders meet_senders(Channel::State& channel, const Sent& outgoing, const Received& incoming) {
  World::State& world = channel.world;
  const auto me = static_cast<size_t>(channel.place);
  Turn& own = channel.turn_of(channel.place);
  const std::span<const std::byte> send = outgoing.whole;
  own.posted = {std::ssize(send), send.empty() ? 0 : world.offset_in_region(send.data(), std::ssize(send))};
  std::memcpy(own.window, outgoing.cuts.data(), outgoing.cuts.size_bytes());
  channel.meet();
  Senders senders;
  for (int p : channel.local()) {
    const auto place = static_cast<size_t>(p);
    Turn& theirs = channel.turn_of(p);
    std::vector<int64_t> cuts(channel.size() + 1);
    std::memcpy(cuts.data(), theirs.window, cuts.size() * sizeof(int64_t));
    MEGALITH_ASSERT(cuts[me + 1] - cuts[me] == std::ssize(incoming.of(place)),
                    "{} on channel {}: rank {} sends {} bytes, rank {} expects {}", channel.doing, channel.name,
                    channel.members[place], cuts[me + 1] - cuts[me], world.rank, incoming.of(place).size());
    senders.shared &= theirs.posted.offset >= 0;
    senders.largest = std::max(senders.largest, theirs.posted.bytes);
    std::byte* const buffer = senders.shared && theirs.posted.bytes > 0
                                  ? world.in_region_of(channel.members[place], theirs.posted.offset)
                                  : nullptr;
    senders.all.push_back({place, std::move(cuts), buffer});
  }
  channel.turn++;
  return senders;
}

void fetch_in_place(Channel::State& channel, const Senders& senders, const Received& incoming) {
  const auto me = static_cast<size_t>(channel.place);
  for (const Sender& sender : senders.all) {
    const std::span<std::byte> to = incoming.of(sender.place);
    if (sender.place != me && !to.empty()) std::memcpy(to.data(), sender.buffer + sender.cuts[me], to.size());
  }
  channel.meet();
}

void fetch_from_windows(Channel::State& channel, const Senders& senders, const Sent& outgoing, const Received& incoming) {
  const auto me = static_cast<size_t>(channel.place);
  const int64_t rounds = rounds_of(senders.largest);
  for (int64_t round = 0; round < rounds; round++, channel.turn++) {
    const Round parts = round_of(outgoing.cuts, round, rounds);
    for (int p : channel.local()) {
      const auto q = static_cast<size_t>(p);
      if (q == me) continue;
      std::memcpy(channel.turn_of(channel.place).window + parts.in_window[q], outgoing.whole.data() + parts.in_whole[q],
                  static_cast<size_t>(parts.count[q]));
    }
    channel.meet();
    for (const Sender& sender : senders.all) {
      if (sender.place == me) continue;
      const Round theirs = round_of(sender.cuts, round, rounds);
      std::memcpy(incoming.of(sender.place).data() + (theirs.in_whole[me] - sender.cuts[me]),
                  channel.turn_of(static_cast<int>(sender.place)).window + theirs.in_window[me],
                  static_cast<size_t>(theirs.count[me]));
    }
  }
}

}  // namespace

void Channel::State::all_to_all(std::span<const std::byte> send, std::span<const int64_t> send_cuts,
                                std::span<std::byte> receive, std::span<const int64_t> receive_cuts) {
  const auto me = static_cast<size_t>(place);
  const Sent outgoing{send, send_cuts};
  const Received incoming{receive, receive_cuts};
  MEGALITH_ASSERT(outgoing.of(me).size() == incoming.of(me).size(),
                  "{} on channel {}: {} bytes to itself, {} from itself", doing, name, outgoing.of(me).size(),
                  incoming.of(me).size());
  std::copy(outgoing.of(me).begin(), outgoing.of(me).end(), incoming.of(me).begin());
  if (size() == 1) return;

  Transfers transfers(*world.mpi);
  for (size_t p = 0; p < size(); p++) {
    if (host_of[p] == here) continue;
    transfers.receive(incoming.of(p), members[p], tag);
    transfers.send(outgoing.of(p), members[p], tag);
  }
  const Senders senders = meet_senders(*this, outgoing, incoming);
  if (senders.shared) fetch_in_place(*this, senders, incoming);
  else fetch_from_windows(*this, senders, outgoing, incoming);
  transfers.wait(world.waits, doing, name, -1);
}

}  // namespace megalith
