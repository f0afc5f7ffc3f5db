// Chooses the network over which the hosts of a run communicate. Every socket that a run listens on is bound to it.
#pragma once
#include <string>
#include <vector>

namespace megalith::launch {

// One IPv4 address of this host.
struct OwnAddress {
  std::string interface, address;
  int prefix = 32;  // length of the network prefix in bits
  bool operator==(const OwnAddress&) const = default;
};
std::vector<OwnAddress> own_addresses();

// How this host reaches another one: the other host's address, and the address of this host that the route uses.
struct Route {
  std::string host, address, from;
};
std::vector<Route> routes_to(const std::vector<std::string>& hosts);  // leaves out hosts that cannot be resolved

struct Network {
  std::string address;   // address on which the supervisor listens
  std::string included;  // networks as ADDRESS/BITS, separated by commas; all other processes listen on these
};

inline constexpr const char* kLoopback = "127.0.0.0/8";

// `wanted` is an interface or an address of this host. If it is empty, chooses the one that leads to the other hosts.
// Throws UserError if that is ambiguous.
Network choose_network(const std::string& wanted, const std::vector<OwnAddress>& own, const std::vector<Route>& routes);

}  // namespace megalith::launch
