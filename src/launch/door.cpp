#include "launch/door.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace megalith::launch {
namespace {

constexpr int kQueue = 128;  // connections that the kernel keeps until there is a place

bool send_line(int socket, const std::string& line) {
  return ::send(socket, line.data(), line.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(line.size());
}

}  // namespace

Door::Door(const std::string& address, std::string secret)
    : secret_(std::move(secret)), socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  sockaddr_in here{};
  here.sin_family = AF_INET;
  socklen_t size = sizeof here;
  auto* pointer = reinterpret_cast<sockaddr*>(&here);
  if (socket_ < 0 || ::inet_pton(AF_INET, address.c_str(), &here.sin_addr) != 1 || ::bind(socket_, pointer, size) != 0 ||
      ::listen(socket_, kQueue) != 0 || ::getsockname(socket_, pointer, &size) != 0) {
    const int error = errno;
    if (socket_ >= 0) ::close(socket_);
    throw Fault(fmt::format("cannot listen on {} for the other hosts: {}", address, std::strerror(error)));
  }
  port_ = ntohs(here.sin_port);
}

Door::~Door() {
  ::close(socket_);
  for (const Stranger& stranger : strangers_) ::close(stranger.socket);
}

void Door::add_to(std::vector<pollfd>& wait) const {
  if (strangers_.size() < kMostStrangers) wait.push_back({socket_, POLLIN, 0});
  for (const Stranger& stranger : strangers_) wait.push_back({stranger.socket, POLLIN, 0});
}

void Door::accept_some(double now_s) {
  while (strangers_.size() < kMostStrangers) {
    const int socket = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0) return;
    strangers_.push_back({socket, now_s + kHandshake_s, SupervisorHandshake(secret_), ""});
    if (send_line(socket, strangers_.back().handshake.greeting())) continue;
    ::close(socket);
    strangers_.pop_back();
  }
}

// Reads at most kLongestHello bytes in total.
Door::Verdict Door::hear(Stranger& stranger, std::vector<Guest>& guests) {
  char buffer[kLongestHello];
  const ssize_t got = ::recv(stranger.socket, buffer, kLongestHello - stranger.said.size(), 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR ? Verdict::wait : Verdict::refused;
  if (got == 0) return Verdict::refused;
  stranger.said.append(buffer, static_cast<size_t>(got));
  const size_t end = stranger.said.find('\n');
  if (end == std::string::npos) return stranger.said.size() < kLongestHello ? Verdict::wait : Verdict::refused;
  if (end + 1 != stranger.said.size()) return Verdict::refused;  // a monitor sends nothing more before the reply
  const auto admitted = stranger.handshake.admit(std::string_view(stranger.said).substr(0, end));
  if (!admitted || !send_line(stranger.socket, admitted->reply)) return Verdict::refused;
  guests.push_back({admitted->host, stranger.socket});
  return Verdict::admitted;
}

std::vector<Door::Guest> Door::admit(double now_s) {
  std::vector<Guest> guests;
  accept_some(now_s);
  for (auto stranger = strangers_.begin(); stranger != strangers_.end();) {
    Verdict verdict = hear(*stranger, guests);
    if (verdict == Verdict::wait && now_s > stranger->until_s) verdict = Verdict::refused;
    if (verdict == Verdict::refused) ::close(stranger->socket);
    stranger = verdict == Verdict::wait ? std::next(stranger) : strangers_.erase(stranger);
  }
  return guests;
}

}  // namespace megalith::launch
