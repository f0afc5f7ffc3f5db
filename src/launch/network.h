// Which of this host's networks the hosts of a run talk over. Everything that a run listens on is bound to it.
#pragma once
#include <string>
#include <vector>

namespace megalith::launch {

// One IPv4 address of this host.
struct OwnAddress {
  std::string interface, address;
  int prefix = 32;  // bits of the network
  bool operator==(const OwnAddress&) const = default;
};
std::vector<OwnAddress> own_addresses();

// How this host reaches another one: the address there, and this host's address on the way.
struct Route {
  std::string host, address, from;
};
std::vector<Route> routes_to(const std::vector<std::string>& hosts);  // without those that cannot be resolved

struct Network {
  std::string address;   // where the supervisor listens
  std::string included;  // networks with their bits, separated by commas: where all other processes listen
};

inline constexpr const char* kLoopback = "127.0.0.0/8";

// `wanted` is an interface or an address of this host; empty: what leads to the other hosts. UserError if that is not clear.
Network choose_network(const std::string& wanted, const std::vector<OwnAddress>& own, const std::vector<Route>& routes);

}  // namespace megalith::launch
