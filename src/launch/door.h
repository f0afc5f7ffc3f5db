// The listening socket of the supervisor, for the monitors of other hosts. A connection counts only after the handshake.
// Before that it may use little: one short line, a few seconds, one of 32 places.
#pragma once
#include <poll.h>

#include <list>
#include <string>
#include <vector>

#include "launch/handshake.h"

namespace megalith::launch {

inline constexpr size_t kMostStrangers = 32;  // connections without a proof; more of them wait in the kernel's queue

class Door {
 public:
  // Listens on a free port of one address of this host. Throws Fault.
  Door(const std::string& address, std::string secret);
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;
  int port() const { return port_; }
  void add_to(std::vector<pollfd>& wait) const;

  struct Guest {
    std::string host;
    int socket;  // the caller closes it
  };
  std::vector<Guest> admit(double now_s);  // returns the monitors that have given the proof; never blocks
  size_t strangers() const { return strangers_.size(); }

 private:
  struct Stranger {
    int socket;
    double until_s;
    SupervisorHandshake handshake;
    std::string said;
  };
  enum class Verdict { wait, admitted, refused };
  void accept_some(double now_s);
  static Verdict hear(Stranger& stranger, std::vector<Guest>& guests);

  std::string secret_;
  int socket_ = -1, port_ = 0;
  std::list<Stranger> strangers_;
};

}  // namespace megalith::launch
