// The state of a channel: its members' blocks in shared memory, and the operations that use them.
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

inline constexpr int64_t kWindow = int64_t{512} << 10;   // bytes that one round moves through windows
inline constexpr int64_t kRounding = int64_t{16} << 10;  // bytes that rounding of the slices may add to a round
inline constexpr int64_t kMessage = int64_t{256} << 10;  // bytes of a message that one half of a mailbox holds
inline constexpr int64_t kSmall = int64_t{16} << 10;     // bytes; up to this size every member sums everything

// Position of a member's buffer, as its neighbours see it.
struct Posted {
  int64_t bytes = 0;
  int64_t offset = -1;  // offset in the member's region; -1 if it is not shared
};

// A channel alternates between two turns: a member may write into one while its neighbours still read the other.
struct Turn {
  Posted posted;
  alignas(64) std::byte window[kWindow + kRounding];
};

// Messages from one member to one neighbour. They use the two halves alternately.
struct Mailbox {
  struct Half {
    Posted posted;  // `bytes` is the size of the whole message
    alignas(64) std::byte window[kMessage];
  };
  Flag given, taken;  // number of halves written and read so far
  Half halves[2];
};

// A member's block, in its own arena. It starts as zeroes.
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
  std::vector<int> members;  // rank of each place
  int place = 0;
  int tag = 0;               // the first of this channel's three tags
  int messages_tag() const { return tag + 2; }

  // Hosts of this channel, numbered in the order of their first places.
  std::vector<int> host_of;               // by place
  std::vector<std::vector<int>> on_host;  // places by host
  int here = 0;                           // this rank's host
  const std::vector<int>& local() const { return on_host[static_cast<size_t>(here)]; }
  bool one_host() const { return on_host.size() == 1; }

  std::vector<Block*> blocks;             // by place; nullptr on other hosts
  std::vector<int> index_on_host;         // by place: index among the members of its host
  const char* doing = "";                 // name of the operation, for wait observers

  uint32_t step = 0;   // number of meetings so far
  uint32_t turn = 0;   // number of turns taken so far
  std::vector<uint32_t> given, taken;     // number of message halves so far, by place
  std::vector<std::byte> pool;            // parts that are being sent between hosts

  size_t size() const { return members.size(); }
  Block& mine() { return *blocks[static_cast<size_t>(place)]; }
  Turn& turn_of(int member) { return blocks[static_cast<size_t>(member)]->turns[turn % 2]; }

  // A barrier of the members on this host. Afterwards all can read what each wrote before.
  void meet();
  // Takes one turn: tells the neighbours where the buffer is. Returns every local member's buffer by place, as an
  // address in this process. Returns an empty list unless all buffers are shared.
  std::vector<std::byte*> post(const std::byte* data, int64_t bytes);

  void run(Collective kind, Buffer whole, std::span<const int64_t> cuts, Wire wire);
  // one_host.cpp
  void sum_small(Buffer values);
  void work_in_place(Collective kind, Element element, std::span<const int64_t> cuts,
                     const std::vector<std::byte*>& buffers);
  void work_through_windows(Collective kind, Buffer whole, std::span<const int64_t> cuts);
  // several_hosts.cpp; uses windows if `buffers` is empty
  void work_between_hosts(Collective kind, Buffer whole, std::span<const int64_t> cuts, Wire wire,
                          const std::vector<std::byte*>& buffers);
  // all_to_all.cpp
  void all_to_all(std::span<const std::byte> send, std::span<const int64_t> send_cuts, std::span<std::byte> receive,
                  std::span<const int64_t> receive_cuts);
  // messages.cpp
  void send(std::span<const std::byte> message, int to);
  void receive(std::span<std::byte> message, int from);
};

// A large operation is divided into rounds, the same on every host. Each round handles the same fraction of every slice.
// All numbers are in elements, by place.
struct Round {
  std::vector<int64_t> count;
  std::vector<int64_t> in_whole;   // begin of the slice's part in the buffers
  std::vector<int64_t> in_window;  // begin of the part in windows, in which parts are packed
};
int64_t rounds_of(int64_t bytes);
Round round_of(std::span<const int64_t> cuts, int64_t round, int64_t rounds);

}  // namespace megalith
