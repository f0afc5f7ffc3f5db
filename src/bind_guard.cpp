// A library that is loaded into mpirun, its daemons and the ranks (LD_PRELOAD). OpenMPI listens on all addresses of a host,
// even if its settings name networks. This library binds such a socket to one address instead: the first one in the networks
// of the variable MEGALITH_BIND.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

namespace {

using Bind = int (*)(int, const sockaddr*, socklen_t);

// True for OpenMPI's programs and the ranks. mpirun also starts ssh and srun with this library, which must not change.
bool is_guarded() {
  const char* name = program_invocation_short_name;
  return strncmp(name, "mpirun", 6) == 0 || strcmp(name, "orterun") == 0 || strcmp(name, "orted") == 0 ||
         getenv("OMPI_COMM_WORLD_RANK") != nullptr;
}

// True if an address is in a network such as "10.1.0.0/16".
bool lies_in(in_addr address, const char* network, size_t length) {
  char text[64] = "";
  if (length >= sizeof text) return false;
  memcpy(text, network, length);
  char* slash = strchr(text, '/');
  if (!slash) return false;
  *slash = '\0';
  const int prefix = atoi(slash + 1);
  in_addr first{};
  if (inet_pton(AF_INET, text, &first) != 1 || prefix < 0 || prefix > 32) return false;
  const uint32_t mask = prefix == 0 ? 0 : ~uint32_t{0} << (32 - prefix);
  return ((ntohl(address.s_addr) ^ ntohl(first.s_addr)) & mask) == 0;
}

// Finds the first address of this host that is in one of the networks, in the order of the networks.
bool find_address(const char* networks, in_addr& found) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return false;
  bool is_found = false;
  for (const char* at = networks; *at && !is_found;) {
    const size_t length = strcspn(at, ",");
    for (const ifaddrs* each = all; each && !is_found; each = each->ifa_next) {
      if (!each->ifa_addr || each->ifa_addr->sa_family != AF_INET) continue;
      found = reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr;
      is_found = lies_in(found, at, length);
    }
    at += length + (at[length] == ',' ? 1 : 0);
  }
  freeifaddrs(all);
  return is_found;
}

bool is_stream(int socket) {
  int type = 0;
  socklen_t size = sizeof type;
  return getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int bind(int socket, const sockaddr* address, socklen_t size) noexcept {
  const auto real = reinterpret_cast<Bind>(dlsym(RTLD_NEXT, "bind"));
  const char* networks = getenv("MEGALITH_BIND");
  if (networks && address && is_guarded() && is_stream(socket)) {
    if (address->sa_family == AF_INET && size >= sizeof(sockaddr_in)) {
      sockaddr_in here = *reinterpret_cast<const sockaddr_in*>(address);
      if (here.sin_addr.s_addr == htonl(INADDR_ANY)) {
        if (!find_address(networks, here.sin_addr)) {
          errno = EADDRNOTAVAIL;
          return -1;
        }
        return real(socket, reinterpret_cast<const sockaddr*>(&here), sizeof here);
      }
    }
    if (address->sa_family == AF_INET6 && size >= sizeof(sockaddr_in6)) {
      sockaddr_in6 here = *reinterpret_cast<const sockaddr_in6*>(address);
      if (IN6_IS_ADDR_UNSPECIFIED(&here.sin6_addr)) {  // ranks and hosts use only IPv4
        here.sin6_addr = in6addr_loopback;
        return real(socket, reinterpret_cast<const sockaddr*>(&here), sizeof here);
      }
    }
  }
  return real(socket, address, size);
}
