#include "launch/message_line.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"

namespace megalith::launch {
namespace {

constexpr size_t kTooMuch = 16 << 20;  // bytes; the other side counts as lost if more bytes are unsent
constexpr size_t kMostMessages = 256;  // received per call; the rest stays in the kernel, which slows the sender down

}  // namespace

MessageLine::MessageLine(int socket) : socket_(socket) {
  ::fcntl(socket_, F_SETFL, ::fcntl(socket_, F_GETFL) | O_NONBLOCK);
}

MessageLine::MessageLine(MessageLine&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), open_(std::exchange(other.open_, false)),
      incoming_(std::move(other.incoming_)), outgoing_(std::move(other.outgoing_)) {}

MessageLine::~MessageLine() { close(); }

void MessageLine::close() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  open_ = false;
}

void MessageLine::send(const nlohmann::json& message) {
  if (!open_) return;
  outgoing_ += print_any_json(message) + "\n";
  flush();
}

void MessageLine::flush() {
  while (open_ && !outgoing_.empty()) {
    const ssize_t sent = ::send(socket_, outgoing_.data(), outgoing_.size(), MSG_NOSIGNAL);
    if (sent > 0) outgoing_.erase(0, static_cast<size_t>(sent));
    else if (errno == EAGAIN) break;
    else if (errno != EINTR) open_ = false;
  }
  if (outgoing_.size() > kTooMuch) open_ = false;
}

void MessageLine::take_lines(std::vector<nlohmann::json>& messages) {
  size_t begin = 0;
  for (size_t end; (end = incoming_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    nlohmann::json message = try_parse_json(std::string_view(incoming_).substr(begin, end - begin));
    if (message.is_object()) messages.push_back(std::move(message));
    else open_ = false;  // not one of ours
  }
  incoming_.erase(0, begin);
  if (incoming_.size() > kLongestLine) open_ = false;
}

std::vector<nlohmann::json> MessageLine::receive() {
  std::vector<nlohmann::json> messages;
  char buffer[65536];
  while (open_ && messages.size() < kMostMessages) {
    const size_t room = std::min(sizeof buffer, kLongestLine + 1 - incoming_.size());
    const ssize_t got = ::recv(socket_, buffer, room, 0);
    if (got > 0) incoming_.append(buffer, static_cast<size_t>(got));
    else if (got == 0) open_ = false;
    else if (errno == EAGAIN) break;
    else if (errno != EINTR) open_ = false;
    take_lines(messages);
  }
  flush();
  return messages;
}

}  // namespace megalith::launch
