#include "launch/host_link.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "launch/environment.h"
#include "launch/handshake.h"
#include "launch/status_page.h"

namespace megalith::launch {
namespace {

// Longer than several handshakes: other connections may hold all places at the supervisor for that time.
constexpr double kConnect_s = 30;

[[noreturn]] void cannot_reach(const SupervisorAddress& supervisor, const std::string& why) {
  throw Fault(fmt::format("host {} cannot reach the supervisor at {}:{}: {}", host_name(), supervisor.address,
                          supervisor.port, why));
}

// A blocking connection to the supervisor. All its waits share one deadline.
class Caller {
 public:
  explicit Caller(const SupervisorAddress& supervisor)
      : supervisor_(supervisor), socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_port = htons(static_cast<uint16_t>(supervisor.port));
    ::inet_pton(AF_INET, supervisor.address.c_str(), &there.sin_addr);
    if (socket_ < 0) fail(errno);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0) return;
    if (errno != EINPROGRESS) fail(errno);
    wait_for(POLLOUT);
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) fail(error);
  }
  ~Caller() {
    if (socket_ >= 0) ::close(socket_);
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  // Reads byte by byte, because what follows the line belongs to the caller of release().
  std::string read_line() {
    std::string line;
    for (char c; line.size() < kLongestHello;) {
      const ssize_t got = ::recv(socket_, &c, 1, 0);
      if (got == 1 && c == '\n') return line;
      if (got == 1) line += c;
      else if (got == 0) fail(ECONNRESET);
      else if (errno == EAGAIN) wait_for(POLLIN);
      else if (errno != EINTR) fail(errno);
    }
    cannot_reach(supervisor_, "the program that answers there is not a Megalith supervisor");
  }

  void send(const std::string& line) {
    if (::send(socket_, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size())) fail(errno);
  }

  int release() { return std::exchange(socket_, -1); }

 private:
  [[noreturn]] void fail(int error) const { cannot_reach(supervisor_, std::strerror(error)); }

  void wait_for(short what) const {
    const double left_s = until_s_ - monotonic_seconds();
    pollfd wait{socket_, what, 0};
    if (left_s <= 0 || ::poll(&wait, 1, static_cast<int>(left_s * 1000) + 1) == 0) fail(ETIMEDOUT);
  }

  const SupervisorAddress& supervisor_;
  double until_s_ = monotonic_seconds() + kConnect_s;
  int socket_ = -1;
};

}  // namespace

std::string SupervisorAddress::text() const {
  return print_json(
      nlohmann::json{{"run", run}, {"host", host}, {"address", address}, {"port", port}, {"secret", secret}});
}

SupervisorAddress SupervisorAddress::parse(const std::string& text) {
  const nlohmann::json json = try_parse_json(text);
  MEGALITH_ASSERT(json.is_object() && json.contains("secret"), "{} was not written by a supervisor", kSupervisorVariable);
  return {json.at("run"), json.at("host"), json.at("address"), json.at("port"), json.at("secret")};
}

int connect_to_supervisor(const SupervisorAddress& supervisor) {
  Caller caller(supervisor);
  MonitorHandshake handshake(supervisor.secret, host_name());
  const auto answer = handshake.answer(caller.read_line());
  if (!answer) cannot_reach(supervisor, "the program that answers there is not a Megalith supervisor");
  caller.send(*answer);
  if (!handshake.accepts(caller.read_line()))
    cannot_reach(supervisor, "the program that answers there does not know the secret of this run");
  return caller.release();
}

}  // namespace megalith::launch
