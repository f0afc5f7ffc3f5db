// The TCP connections between the supervisor and the monitors of other hosts: their own, not MPI's.
#pragma once
#include <string>
#include <vector>

namespace megalith::launch {

// How a rank finds its supervisor, in one environment variable: only this user can read the environment of a process.
struct SupervisorAddress {
  std::string run;      // the name of this start of the run; everybody may know it
  std::string host;     // host_identity() of the supervisor
  std::string address;  // of the supervisor, for other hosts; empty: one host only
  int port = 0;
  std::string secret;   // what both ends of a connection prove to know; empty: one host only
  std::string text() const;
  static SupervisorAddress parse(const std::string& text);  // Bug if it is none of ours
};

// From another host: connects, and both ends prove that they know the secret. Returns the socket. Throws Fault.
int connect_to_supervisor(const SupervisorAddress& supervisor);

}  // namespace megalith::launch
