#include "launch/network.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "base/error.h"
#include "base/join.h"

namespace megalith::launch {
namespace {

std::string text_of(in_addr address) {
  char text[INET_ADDRSTRLEN] = "";
  ::inet_ntop(AF_INET, &address, text, sizeof text);
  return text;
}

uint32_t number_of(const std::string& address) {
  in_addr number{};
  ::inet_pton(AF_INET, address.c_str(), &number);
  return ntohl(number.s_addr);
}

uint32_t mask_of(int prefix) { return prefix == 0 ? 0 : ~uint32_t{0} << (32 - prefix); }

bool is_loopback(const std::string& address) { return number_of(address) >> 24 == 127; }

bool contains(const OwnAddress& own, const std::string& address) {
  return ((number_of(own.address) ^ number_of(address)) & mask_of(own.prefix)) == 0;
}

std::string network_of(const OwnAddress& own) {
  in_addr first{htonl(number_of(own.address) & mask_of(own.prefix))};
  return fmt::format("{}/{}", text_of(first), own.prefix);
}

const OwnAddress* find(const std::vector<OwnAddress>& own, const std::string& wanted) {
  const auto found = std::find_if(own.begin(), own.end(), [&](const OwnAddress& each) {
    return each.address == wanted || each.interface == wanted;
  });
  return found == own.end() ? nullptr : &*found;
}

[[noreturn]] void refuse_network(std::string expected, std::string got) {
  throw UserError({"command line", "--interface", std::move(expected), std::move(got),
                   "name the interface that reaches the other hosts, for example --interface eth0"});
}

// The address of this host that the route to `there` uses.
std::optional<std::string> source_towards(const sockaddr_in& there) {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);  // connecting a UDP socket sends nothing
  if (socket < 0) return std::nullopt;
  sockaddr_in here{};
  socklen_t size = sizeof here;
  const bool known = ::connect(socket, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0 &&
                     ::getsockname(socket, reinterpret_cast<sockaddr*>(&here), &size) == 0;
  ::close(socket);
  return known ? std::optional(text_of(here.sin_addr)) : std::nullopt;
}

// The routes that leave this host, or all routes if none does: all names may mean this machine.
std::vector<Route> leaving(const std::vector<Route>& routes, const std::vector<OwnAddress>& own) {
  std::vector<Route> away;
  for (const Route& route : routes)
    if (!is_loopback(route.address) && !find(own, route.address)) away.push_back(route);
  return away.empty() ? routes : away;
}

}  // namespace

std::vector<OwnAddress> own_addresses() {
  std::vector<OwnAddress> found;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return found;
  for (const ifaddrs* each = all; each; each = each->ifa_next) {
    if (!each->ifa_addr || each->ifa_addr->sa_family != AF_INET || !each->ifa_netmask) continue;
    const in_addr mask = reinterpret_cast<const sockaddr_in*>(each->ifa_netmask)->sin_addr;
    found.push_back({each->ifa_name, text_of(reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr),
                     std::popcount(mask.s_addr)});
  }
  ::freeifaddrs(all);
  return found;
}

std::vector<Route> routes_to(const std::vector<std::string>& hosts) {
  std::vector<Route> routes;
  for (const std::string& host : hosts) {
    addrinfo wanted{}, *found = nullptr;
    wanted.ai_family = AF_INET;
    wanted.ai_socktype = SOCK_DGRAM;
    if (::getaddrinfo(host.c_str(), "9", &wanted, &found) != 0) continue;
    const sockaddr_in there = *reinterpret_cast<const sockaddr_in*>(found->ai_addr);
    ::freeaddrinfo(found);
    if (const auto from = source_towards(there)) routes.push_back({host, text_of(there.sin_addr), *from});
  }
  return routes;
}

Network choose_network(const std::string& wanted, const std::vector<OwnAddress>& own, const std::vector<Route>& routes) {
  const std::vector<Route> away = leaving(routes, own);
  if (wanted.empty() && away.empty()) refuse_network("a route to the other hosts", "only names that cannot be resolved");
  const std::string address = wanted.empty() ? away.front().from : wanted;
  const OwnAddress* chosen = find(own, address);
  if (!chosen) {
    std::vector<std::string> names;
    for (const OwnAddress& each : own) names.push_back(fmt::format("{} ({})", each.interface, each.address));
    refuse_network("one of " + some_of(names), address);
  }
  Network network{chosen->address, network_of(*chosen)};
  for (const Route& route : away) {
    if (wanted.empty() && route.from != chosen->address)
      refuse_network(fmt::format("one address that reaches all hosts ({} reaches {})", chosen->address, away.front().host),
                     fmt::format("{} for {}", route.from, route.host));
    // Allow hosts behind a router one by one: they are outside of the chosen network. If the user named an interface, only
    // its own network is allowed, unless this network is a single address.
    if (!contains(*chosen, route.address) && (wanted.empty() || chosen->prefix == 32))
      network.included += fmt::format(",{}/32", route.address);
  }
  return network;
}

}  // namespace megalith::launch
