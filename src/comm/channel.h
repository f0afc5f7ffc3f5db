// One group of ranks on one lane: collectives and messages that block the calling thread. Only one thread at a time may
// use a channel, except that send may run beside one other call.
//
// Every member makes the same calls in the same order. Sums add the members' elements in the order of the members. They
// do not depend on timing, sizes, kind of memory or hosts, so a rerun gives the same bits.
//
// On one host, buffers inside shared regions (World::share_memory) are used directly. Other buffers pass through bounded
// windows. Between hosts, partial sums and results are sent in pieces through MPI.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/buffer.h"

namespace megalith {

// The format in which sums of float32 are sent between hosts. bf16 halves the bytes, and rounds every partial sum and
// result that is sent. All ranks still get the same result. Inside a host nothing is rounded.
enum class Wire : uint8_t { exact, bf16 };

class Channel {
 public:
  struct State;
  explicit Channel(std::unique_ptr<State> state);  // called by World::channel
  ~Channel();
  Channel(Channel&&) noexcept;
  Channel& operator=(Channel&&) noexcept;

  const std::string& name() const;
  int size() const;
  int place() const;                      // index of this rank among the members
  const std::vector<int>& members() const;  // ranks
  bool spans_hosts() const;

  void barrier();

  // Replaces every member's values by their sum. 16-bit values are summed in float32 and rounded once.
  void all_reduce(Buffer values, Wire wire = Wire::exact);

  // `cuts`: size() + 1 offsets in elements, ascending from 0 to whole.count; slice p is [cuts[p], cuts[p + 1]).
  // reduce_scatter replaces this member's slice by the sum over all members. The rest of the buffer stays as it was.
  void reduce_scatter(Buffer whole, std::span<const int64_t> cuts, Wire wire = Wire::exact);
  // all_gather fills every slice p with the slice p of member p.
  void all_gather(Buffer whole, std::span<const int64_t> cuts);

  // Copies member p's bytes [send_cuts[q], send_cuts[q + 1]) to member q's [receive_cuts[p], receive_cuts[p + 1]). The
  // two buffers must not overlap.
  void all_to_all(std::span<const std::byte> send, std::span<const int64_t> send_cuts, std::span<std::byte> receive,
                  std::span<const int64_t> receive_cuts);

  void broadcast(Buffer values, int root);

  // Messages between two places are received in the order they are sent. Both sides must pass the same size. send
  // returns when the receiver has taken the whole message.
  void send(std::span<const std::byte> message, int to);
  void receive(std::span<std::byte> message, int from);

 private:
  std::unique_ptr<State> state_;
};

}  // namespace megalith
