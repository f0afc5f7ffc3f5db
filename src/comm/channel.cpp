#include "comm/channel.h"

#include <xxhash.h>

#include <algorithm>

#include "base/error.h"
#include "base/join.h"
#include "comm/channel_state.h"
#include "layout/cuts.h"

namespace megalith {
namespace {

// Data that the members of a new channel exchange.
struct Introduction {
  uint64_t fingerprint = 0;  // of name and members: must be equal on all members
  int64_t block = 0;         // offset in the rank's arena
  int32_t number = 0;        // the lowest free channel number at this rank
};

constexpr int kIntroductionTag = 0, kFirstTag = 1, kTagsOfChannel = 3;

void check_cuts(std::span<const int64_t> cuts, size_t size, int64_t count) {
  MEGALITH_ASSERT(cuts.size() == size + 1 && cuts.front() == 0 && cuts.back() == count &&
                      std::is_sorted(cuts.begin(), cuts.end()),
                  "{} cuts for {} members over {} elements", cuts.size(), size, count);
}

}  // namespace

Channel::State::State(World::State& world_, std::vector<int> members_, std::string name_)
    : world(world_), name(std::move(name_)), members(std::move(members_)), given(size()), taken(size()) {
  const auto found = std::find(members.begin(), members.end(), world.rank);
  MEGALITH_ASSERT(found != members.end(), "channel {} does not include rank {}, which creates it", name, world.rank);
  place = static_cast<int>(found - members.begin());
  std::vector<int> number(static_cast<size_t>(world.hosts), -1);
  for (size_t p = 0; p < size(); p++) {
    int& host = number[static_cast<size_t>(world.host_of.at(static_cast<size_t>(members[p])))];
    if (host < 0) {
      host = static_cast<int>(on_host.size());
      on_host.emplace_back();
    }
    host_of.push_back(host);
    index_on_host.push_back(static_cast<int>(on_host[static_cast<size_t>(host)].size()));
    on_host[static_cast<size_t>(host)].push_back(static_cast<int>(p));
  }
  here = host_of[static_cast<size_t>(place)];
  if (size() == 1) return;
  MEGALITH_ASSERT(std::ssize(members) * 8 < kRounding, "channel {} of {} members", name, size());

  const std::string meaning = fmt::format("{} {}", name, join(members, ","));
  const Introduction own{XXH3_64bits(meaning.data(), meaning.size()),
                         world.take_from_arena(Block::bytes(static_cast<int>(local().size()))), world.next_channel};
  std::vector<Introduction> all(size(), own);
  Transfers transfers(*world.mpi);
  const auto bytes_of = [](auto& one) { return std::as_writable_bytes(std::span(&one, 1)); };
  for (size_t p = 0; p < size(); p++) {
    if (members[p] == world.rank) continue;
    transfers.receive(bytes_of(all[p]), members[p], kIntroductionTag);
    transfers.send(std::as_bytes(std::span(&own, 1)), members[p], kIntroductionTag);
  }
  transfers.wait(world.waits, "new channel", name, -1);
  int32_t chosen = 0;
  for (size_t p = 0; p < size(); p++) {
    MEGALITH_ASSERT(all[p].fingerprint == own.fingerprint,
                    "rank {} created a different channel than rank {} ({})", members[p], world.rank, meaning);
    chosen = std::max(chosen, all[p].number);
    const Mapping* arena = host_of[p] == here ? &world.arenas[static_cast<size_t>(members[p])] : nullptr;
    blocks.push_back(arena != nullptr ? reinterpret_cast<Block*>(arena->data() + all[p].block) : nullptr);
  }
  // A channel's number is higher than all numbers that its members have used. So two channels that share a pair of ranks
  // never share a tag.
  world.next_channel = chosen + 1;
  tag = kFirstTag + chosen * kTagsOfChannel;
  if (tag + kTagsOfChannel > world.mpi->largest_tag()) throw Fault("too many channels: this MPI has too few message tags");
}

void Channel::State::meet() {
  mine().step.raise(++step);
  for (int p : local()) {
    if (p == place) continue;
    Flag& theirs = blocks[static_cast<size_t>(p)]->step;
    const int rank = members[static_cast<size_t>(p)];
    if (one_host()) {
      await(theirs, step, world.waits, doing, name, rank);
      continue;
    }
    if (theirs.reached(step)) continue;
    Backoff patience(world.waits, doing, name, rank);
    while (!theirs.reached(step)) {
      world.mpi->progress();  // MPI may still have to send data of this rank that the neighbour waits for
      if (!patience.looks_again()) patience.nap();
    }
  }
}

std::vector<std::byte*> Channel::State::post(const std::byte* data, int64_t bytes) {
  turn_of(place).posted = {bytes, world.offset_in_region(data, bytes)};
  meet();
  std::vector<std::byte*> buffers(size(), nullptr);
  bool shared = true;
  for (int p : local()) {
    const Posted posted = turn_of(p).posted;
    MEGALITH_ASSERT(posted.bytes == bytes, "{} on channel {}: {} bytes here, {} at rank {}", doing, name, bytes,
                    posted.bytes, members[static_cast<size_t>(p)]);
    shared &= posted.offset >= 0;
    if (!shared) continue;
    buffers[static_cast<size_t>(p)] = world.in_region_of(members[static_cast<size_t>(p)], posted.offset);
  }
  turn++;
  if (!shared) buffers.clear();
  return buffers;
}

void Channel::State::run(Collective kind, Buffer whole, std::span<const int64_t> cuts, Wire wire) {
  if (size() == 1 || whole.count == 0) return;
  if (one_host() && kind == Collective::all_reduce && whole.bytes() <= kSmall) return sum_small(whole);
  const std::vector<std::byte*> buffers = post(whole.data, whole.bytes());
  if (!one_host()) {
    work_between_hosts(kind, whole, cuts, wire, buffers);
  } else if (buffers.empty()) {
    work_through_windows(kind, whole, cuts);
  } else {
    work_in_place(kind, whole.element, cuts, buffers);
  }
  if (!buffers.empty()) meet();  // neighbours no longer use this member's buffer
}

Channel::Channel(std::unique_ptr<State> state) : state_(std::move(state)) {}
Channel::~Channel() = default;
Channel::Channel(Channel&&) noexcept = default;
Channel& Channel::operator=(Channel&&) noexcept = default;

const std::string& Channel::name() const { return state_->name; }
int Channel::size() const { return static_cast<int>(state_->size()); }
int Channel::place() const { return state_->place; }
const std::vector<int>& Channel::members() const { return state_->members; }
bool Channel::spans_hosts() const { return !state_->one_host(); }

void Channel::barrier() {
  double nothing = 0;
  state_->doing = "barrier";
  state_->run(Collective::all_reduce, std::span(&nothing, 1), even_cuts(1, size()), Wire::exact);
}

void Channel::all_reduce(Buffer values, Wire wire) {
  state_->doing = "all_reduce";
  state_->run(Collective::all_reduce, values, even_cuts(values.count, size()), wire);
}

void Channel::reduce_scatter(Buffer whole, std::span<const int64_t> cuts, Wire wire) {
  check_cuts(cuts, state_->size(), whole.count);
  state_->doing = "reduce_scatter";
  state_->run(Collective::reduce_scatter, whole, cuts, wire);
}

void Channel::all_gather(Buffer whole, std::span<const int64_t> cuts) {
  check_cuts(cuts, state_->size(), whole.count);
  state_->doing = "all_gather";
  state_->run(Collective::all_gather, whole, cuts, Wire::exact);
}

void Channel::broadcast(Buffer values, int root) {
  MEGALITH_ASSERT(root >= 0 && root < size(), "place {} of {}", root, size());
  std::vector<int64_t> cuts(state_->size() + 1, 0);
  std::fill(cuts.begin() + root + 1, cuts.end(), values.count);
  state_->doing = "broadcast";
  state_->run(Collective::all_gather, values, cuts, Wire::exact);
}

void Channel::all_to_all(std::span<const std::byte> send, std::span<const int64_t> send_cuts,
                         std::span<std::byte> receive, std::span<const int64_t> receive_cuts) {
  check_cuts(send_cuts, state_->size(), std::ssize(send));
  check_cuts(receive_cuts, state_->size(), std::ssize(receive));
  state_->doing = "all_to_all";
  state_->all_to_all(send, send_cuts, receive, receive_cuts);
}

void Channel::send(std::span<const std::byte> message, int to) {
  MEGALITH_ASSERT(to >= 0 && to < size() && to != place(), "from place {} to place {} of {}", place(), to, size());
  state_->send(message, to);
}

void Channel::receive(std::span<std::byte> message, int from) {
  MEGALITH_ASSERT(from >= 0 && from < size() && from != place(), "from place {} to place {} of {}", from, place(),
                  size());
  state_->receive(message, from);
}

}  // namespace megalith
