// The TCP connections between the supervisor and the wardens of other hosts: their own, not MPI's.
#pragma once
#include <string>
#include <vector>

namespace megalith::launch {

// How a rank finds its supervisor, in one environment variable.
struct SupervisorAddress {
  std::string token;                   // of this start of the run
  std::string host;                    // host_identity() of the supervisor
  std::vector<std::string> addresses;  // of it, for other hosts; empty: one host only
  int port = 0;
  std::string text() const;
  static SupervisorAddress parse(const std::string& text);  // Bug when it is none of ours
};

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
