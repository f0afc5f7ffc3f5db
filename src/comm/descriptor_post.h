// Sends open descriptors to processes of the same host, over a Unix datagram socket with an abstract name. It needs
// neither files nor /proc, and leaves nothing behind.
#pragma once
#include <cstdint>

#include "comm/backoff.h"
#include "comm/shared_memory.h"

namespace megalith {

class DescriptorPost {
 public:
  // Another process needs this to send here. All processes can see names, so the secret keeps strangers out.
  struct Address {
    uint64_t name = 0;
    uint64_t secret = 0;
  };
  struct Letter {
    int rank = -1;      // rank of the sender
    int64_t bytes = 0;  // size of the memory behind the descriptor; 0 without a descriptor
    Descriptor descriptor;
  };

  DescriptorPost();
  const Address& address() const { return address_; }

  // Returns false if the receiver's queue is full: receive a letter, then try again. `fd` -1: no descriptor.
  bool send(const Address& to, int rank, int64_t bytes, int fd) const;
  // Waits for the next letter.
  Letter receive(const WaitControl& control) const;
  // Returns the next letter, or one with rank -1 if no letter has arrived.
  Letter receive_if_any() const;

 private:
  Descriptor socket_;
  Address address_;
};

}  // namespace megalith
