// One group of ranks on one lane: collectives and messages that block the calling thread. A thread at a time may
// use a channel, but for send, which may run beside one other call.
//
// Every member makes the same calls in the same order. Sums are taken in the order of the members, element by
// element, whatever the timing, the sizes, the kind of memory or the hosts: a rerun gives the same bits.
//
// On one host, buffers inside shared regions (World::share_memory) are worked on where they lie; others pass through
// bounded windows. Between hosts partial sums and results travel in pieces through MPI.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/buffer.h"

namespace megalith {

// How sums of float32 travel between hosts. bf16 halves the bytes: every partial sum and result is rounded on its
// way (all ranks still end with the same result); inside a host nothing is rounded.
enum class Wire : uint8_t { exact, bf16 };

class Channel {
 public:
  struct State;
  explicit Channel(std::unique_ptr<State> state);  // World::channel makes them
  ~Channel();
  Channel(Channel&&) noexcept;
  Channel& operator=(Channel&&) noexcept;

  const std::string& name() const;
  int size() const;
  int place() const;                      // of this rank among the members
  const std::vector<int>& members() const;  // ranks
  bool spans_hosts() const;

  void barrier();

  // Every member's values become their sum. 16-bit values are summed in float32 and rounded once.
  void all_reduce(Buffer values, Wire wire = Wire::exact);

  // `cuts`: size() + 1 offsets in elements from 0 to whole.count, never falling; slice p is [cuts[p], cuts[p + 1]).
  // reduce_scatter: this member's slice becomes the sum of all members'; the rest stays as it was.
  void reduce_scatter(Buffer whole, std::span<const int64_t> cuts, Wire wire = Wire::exact);
  // all_gather: every slice becomes that of its member.
  void all_gather(Buffer whole, std::span<const int64_t> cuts);

  // Member p's bytes [send_cuts[q], send_cuts[q + 1]) become member q's [receive_cuts[p], receive_cuts[p + 1]).
  // The two buffers must not overlap.
  void all_to_all(std::span<const std::byte> send, std::span<const int64_t> send_cuts, std::span<std::byte> receive,
                  std::span<const int64_t> receive_cuts);

  void broadcast(Buffer values, int root);

  // Messages between two places match in the order they are sent, and must be of one size. send returns when the
  // receiver has taken all of it.
  void send(std::span<const std::byte> message, int to);
  void receive(std::span<std::byte> message, int from);

 private:
  std::unique_ptr<State> state_;
};

}  // namespace megalith
