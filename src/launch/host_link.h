// The TCP connections between the supervisor and the monitors of other hosts. They do not use MPI.
#pragma once
#include <string>
#include <vector>

namespace megalith::launch {

// The data with which a rank finds its supervisor. It is in an environment variable, because only this user can read the
// environment of a process.
struct SupervisorAddress {
  std::string run;      // the name of this start of the run; not secret
  std::string host;     // host_identity() of the supervisor
  std::string address;  // address of the supervisor for other hosts; empty: one host only
  int port = 0;
  std::string secret;   // the secret that both ends of a connection prove to know; empty: one host only
  std::string text() const;
  static SupervisorAddress parse(const std::string& text);  // throws Bug if our supervisor did not write the text
};

// Called on another host. Connects; both ends prove that they know the secret. Returns the socket. Throws Fault.
int connect_to_supervisor(const SupervisorAddress& supervisor);

}  // namespace megalith::launch
