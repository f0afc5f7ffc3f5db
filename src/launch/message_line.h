// JSON messages over a stream socket, one per line. Never blocks.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace megalith::launch {

inline constexpr size_t kLongestLine = 4 << 20;  // bytes; a host with 1000 ranks needs a tenth of it

class MessageLine {
 public:
  explicit MessageLine(int socket);  // owns it
  ~MessageLine();
  MessageLine(MessageLine&& other) noexcept;
  MessageLine& operator=(MessageLine&&) = delete;
  MessageLine(const MessageLine&) = delete;

  int socket() const { return socket_; }
  bool open() const { return open_; }  // false once the other side is gone or broken
  // If the message does not fit into the socket now, a later call sends the rest.
  void send(const nlohmann::json& message);
  std::vector<nlohmann::json> receive();
  void close();

 private:
  void flush();
  void take_lines(std::vector<nlohmann::json>& messages);
  int socket_ = -1;
  bool open_ = true;
  std::string incoming_, outgoing_;
};

}  // namespace megalith::launch
