// The inside of a channel: its members' blocks in shared memory, and what all of its operations are made of.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/channel.h"
#include "comm/flag.h"
#include "comm/world_state.h"

namespace megalith {

inline constexpr int64_t kWindow = int64_t{512} << 10;   // bytes of a round, what passes through windows at once
inline constexpr int64_t kRounding = int64_t{16} << 10;  // and what the rounding of every slice may add
inline constexpr int64_t kMessage = int64_t{256} << 10;  // the same of a message
inline constexpr int64_t kSmall = int64_t{16} << 10;     // up to here every member sums everything by itself

// Where a member's buffer lies, as it tells its neighbours.
struct Posted {
  int64_t bytes = 0;
  int64_t offset = -1;  // in its region; -1 when it is not shared
};

// A channel alternates between two turns: a member may write into one while its neighbours still read the other.
struct Turn {
  Posted posted;
  alignas(64) std::byte window[kWindow + kRounding];
};

// Messages from one member to one neighbour, through two halves in turn.
struct Mailbox {
  struct Half {
    Posted posted;  // bytes: of the whole message
    alignas(64) std::byte window[kMessage];
  };
  Flag given, taken;  // halves
  Half halves[2];
};

// A member's block, in its own arena: all zero at first.
struct Block {
  Flag step;
  Turn turns[2];
  Mailbox& mail_to(int neighbour) { return reinterpret_cast<Mailbox*>(this + 1)[neighbour]; }
  static int64_t bytes(int neighbours) {
    return static_cast<int64_t>(sizeof(Block) + sizeof(Mailbox) * static_cast<size_t>(neighbours));
  }
};

enum class Collective : uint8_t { all_reduce, reduce_scatter, all_gather };

struct Channel::State {
  State(World::State& world, std::vector<int> members, std::string name);

  World::State& world;
  std::string name;
  std::vector<int> members;  // ranks by place
  int place = 0;
  int tag = 0;               // the first of this channel's three
  int messages_tag() const { return tag + 2; }

  // Hosts of this channel, numbered by their first place.
  std::vector<int> host_of;               // by place
  std::vector<std::vector<int>> on_host;  // places by host
  int here = 0;                           // this rank's host
  const std::vector<int>& local() const { return on_host[static_cast<size_t>(here)]; }
  bool one_host() const { return on_host.size() == 1; }

  std::vector<Block*> blocks;             // by place; nullptr on other hosts
  std::vector<int> index_on_host;         // by place: which of its host's members
  const char* doing = "";                 // the operation, for whoever watches

  uint32_t step = 0;   // meetings so far
  uint32_t turn = 0;   // turns taken so far
  std::vector<uint32_t> given, taken;     // halves of messages so far, by place
  std::vector<std::byte> pool;            // parts on their way between hosts

  size_t size() const { return members.size(); }
  Block& mine() { return *blocks[static_cast<size_t>(place)]; }
  Turn& turn_of(int member) { return blocks[static_cast<size_t>(member)]->turns[turn % 2]; }

  // All neighbours come; what each wrote before, all can read after.
  void meet();
  // One turn: tells the neighbours where the buffer lies. Every local member's buffer as it is mapped here, by
  // place; empty unless all of them are shared.
  std::vector<std::byte*> post(const std::byte* data, int64_t bytes);

  void run(Collective kind, Buffer whole, std::span<const int64_t> cuts, Wire wire);
  // one_host.cpp
  void sum_small(Buffer values);
  void work_in_place(Collective kind, Element element, std::span<const int64_t> cuts,
                     const std::vector<std::byte*>& buffers);
  void work_through_windows(Collective kind, Buffer whole, std::span<const int64_t> cuts);
  // several_hosts.cpp; without `buffers`, through windows
  void work_between_hosts(Collective kind, Buffer whole, std::span<const int64_t> cuts, Wire wire,
                          const std::vector<std::byte*>& buffers);
  // all_to_all.cpp
  void all_to_all(std::span<const std::byte> send, std::span<const int64_t> send_cuts, std::span<std::byte> receive,
                  std::span<const int64_t> receive_cuts);
  // messages.cpp
  void send(std::span<const std::byte> message, int to);
  void receive(std::span<std::byte> message, int from);
};

// A large operation is cut into rounds, the same on every host: round r takes the same fraction of every slice.
// In elements, by place.
struct Round {
  std::vector<int64_t> count;
  std::vector<int64_t> in_whole;   // where the slice's part begins in the buffers
  std::vector<int64_t> in_window;  // and in windows, where parts are packed
};
int64_t rounds_of(int64_t bytes);
Round round_of(std::span<const int64_t> cuts, int64_t round, int64_t rounds);

}  // namespace megalith
