// Messages between two members of one host: one copy from region to buffer, or through the two halves of a mailbox.
// Messages between hosts go through MPI.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "comm/channel_state.h"

namespace megalith {

void Channel::State::send(std::span<const std::byte> message, int to) {
  if (message.empty()) return;
  const int rank = members[static_cast<size_t>(to)];
  if (blocks[static_cast<size_t>(to)] == nullptr) {
    Transfers transfers(*world.mpi);
    transfers.send(message, rank, messages_tag());
    return transfers.wait(world.waits, "send", name, rank);
  }
  Mailbox& mailbox = mine().mail_to(index_on_host[static_cast<size_t>(to)]);
  uint32_t& count = given[static_cast<size_t>(to)];
  const auto await_taken = [&](uint32_t halves) { await(mailbox.taken, halves, world.waits, "send", name, rank); };
  const Posted posted{std::ssize(message), world.offset_in_region(message.data(), std::ssize(message))};
  const int64_t piece = posted.offset >= 0 ? posted.bytes : kMessage;
  for (int64_t at = 0; at < posted.bytes; at += piece) {
    await_taken(count - 1);  // until the receiver has taken the previous content of this half
    Mailbox::Half& half = mailbox.halves[count % 2];
    half.posted = posted;
    if (posted.offset < 0) {
      std::memcpy(half.window, message.data() + at, static_cast<size_t>(std::min(piece, posted.bytes - at)));
    }
    mailbox.given.raise(++count);
  }
  await_taken(count);
}

void Channel::State::receive(std::span<std::byte> message, int from) {
  if (message.empty()) return;
  const int rank = members[static_cast<size_t>(from)];
  Block* const sender = blocks[static_cast<size_t>(from)];
  if (sender == nullptr) {
    Transfers transfers(*world.mpi);
    transfers.receive(message, rank, messages_tag());
    return transfers.wait(world.waits, "receive", name, rank);
  }
  Mailbox& mailbox = sender->mail_to(index_on_host[static_cast<size_t>(place)]);
  uint32_t& count = taken[static_cast<size_t>(from)];
  for (int64_t at = 0; at < std::ssize(message);) {
    await(mailbox.given, count + 1, world.waits, "receive", name, rank);
    const Mailbox::Half& half = mailbox.halves[count % 2];
    const Posted posted = half.posted;
    MEGALITH_ASSERT(posted.bytes == std::ssize(message),
                    "channel {}: rank {} sends {} bytes, rank {} expects {}", name, rank, posted.bytes, world.rank,
                    message.size());
    const int64_t piece = posted.offset >= 0 ? posted.bytes : std::min(kMessage, posted.bytes - at);
    const std::byte* source = posted.offset >= 0 ? world.in_region_of(rank, posted.offset) : half.window;
    std::memcpy(message.data() + at, source, static_cast<size_t>(piece));
    at += piece;
    mailbox.taken.raise(++count);
  }
}

}  // namespace megalith
