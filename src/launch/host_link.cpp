#include "launch/host_link.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/join.h"
#include "base/json.h"
#include "launch/environment.h"

namespace megalith::launch {
namespace {

constexpr int kConnect_ms = 3000;

// errno, 0 when connected.
int connect_within(int socket, const sockaddr_in& address, int milliseconds) {
  ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd wait{socket, POLLOUT, 0};
  if (::poll(&wait, 1, milliseconds) <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

}  // namespace

std::string SupervisorAddress::text() const {
  return print_json(nlohmann::json{{"token", token}, {"host", host}, {"addresses", addresses}, {"port", port}});
}

SupervisorAddress SupervisorAddress::parse(const std::string& text) {
  const nlohmann::json json = try_parse_json(text);
  MEGALITH_ASSERT(json.is_object(), "{} is {}", kSupervisorVariable, text);
  return {json.at("token"), json.at("host"), json.at("addresses"), json.at("port")};
}

Listener::Listener() : socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  sockaddr_in any{};
  any.sin_family = AF_INET;
  socklen_t size = sizeof any;
  auto* address = reinterpret_cast<sockaddr*>(&any);
  if (socket < 0 || ::bind(socket, address, size) != 0 || ::listen(socket, 128) != 0 ||
      ::getsockname(socket, address, &size) != 0)
    throw Fault(fmt::format("no socket for the other hosts: {}", std::strerror(errno)));
  port = ntohs(any.sin_port);
}

Listener::~Listener() { ::close(socket); }

std::vector<std::string> own_addresses() {
  std::vector<std::string> found;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return found;
  for (const ifaddrs* each = all; each; each = each->ifa_next) {
    if (!each->ifa_addr || each->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN];
    const auto* address = reinterpret_cast<const sockaddr_in*>(each->ifa_addr);
    if (!::inet_ntop(AF_INET, &address->sin_addr, text, sizeof text)) continue;
    found.insert((each->ifa_flags & IFF_LOOPBACK) != 0 ? found.end() : found.begin(), text);
  }
  ::freeifaddrs(all);
  return found;
}

int connect_to_supervisor(const SupervisorAddress& supervisor) {
  std::vector<std::string> tried;
  for (const std::string& text : supervisor.addresses) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(supervisor.port));
    ::inet_pton(AF_INET, text.c_str(), &address.sin_addr);
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int error = socket < 0 ? errno : connect_within(socket, address, kConnect_ms);
    if (error == 0) {
      const std::string hello =
          print_json(nlohmann::json{{"token", supervisor.token}, {"host", host_name()}}) + "\n";
      if (::send(socket, hello.data(), hello.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(hello.size())) return socket;
    }
    tried.push_back(fmt::format("{} ({})", text, std::strerror(error)));
    if (socket >= 0) ::close(socket);
  }
  throw Fault(fmt::format("host {} cannot reach the supervisor on port {}: tried {}", host_name(), supervisor.port,
                          join(tried, ", ")));
}

}  // namespace megalith::launch
