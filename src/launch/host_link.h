// The TCP connections between the supervisor and the wardens of other hosts: their own, not MPI's.
#pragma once
#include <string>
#include <vector>

#include "launch/rank_process.h"

namespace megalith::launch {

// A listening socket on any port of all interfaces.
struct Listener {
  Listener();  // Fault when there is none
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  int socket = -1, port = 0;
};

std::vector<std::string> own_addresses();  // IPv4; loopback last: hosts may be names of one machine

// From another host. Tries all addresses and says hello: {"token", "host"}. Fault that lists what was tried.
int connect_to_supervisor(const SupervisorAddress& supervisor);

}  // namespace megalith::launch
