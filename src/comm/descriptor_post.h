// Hands open descriptors to processes of the same host: a Unix datagram socket with an abstract name, so that
// neither a file nor /proc is needed and nothing is left behind.
#pragma once
#include <cstdint>

#include "comm/backoff.h"
#include "comm/shared_memory.h"

namespace megalith {

class DescriptorPost {
 public:
  // What another process must know to write here. The secret keeps strangers out: names are visible to all.
  struct Address {
    uint64_t name = 0;
    uint64_t secret = 0;
  };
  struct Letter {
    int rank = -1;      // the sender's
    int64_t bytes = 0;  // of the memory behind the descriptor; 0 without one
    Descriptor descriptor;
  };

  DescriptorPost();
  const Address& address() const { return address_; }

  // False when the receiver's queue is full: take a letter, then try again. `fd` -1: no descriptor.
  bool send(const Address& to, int rank, int64_t bytes, int fd) const;
  // Waits for the next letter.
  Letter receive(const WaitControl& control) const;
  // The next letter if there is one; a rank of -1 if not.
  Letter receive_if_any() const;

 private:
  Descriptor socket_;
  Address address_;
};

}  // namespace megalith
