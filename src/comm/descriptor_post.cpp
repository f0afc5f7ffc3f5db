#include "comm/descriptor_post.h"

#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/error.h"

namespace megalith {
namespace {

struct Envelope {
  uint64_t secret = 0;
  int64_t bytes = 0;
  int32_t rank = -1;
  int32_t has_descriptor = 0;
};

// An abstract name begins with a zero byte and creates no file.
socklen_t fill(sockaddr_un& address, uint64_t name) {
  address = {};
  address.sun_family = AF_UNIX;
  const std::string text = fmt::format("megalith-{:016x}", name);
  std::memcpy(address.sun_path + 1, text.data(), text.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
}

union Control {
  char bytes[CMSG_SPACE(sizeof(int))];
  cmsghdr aligned;
};

}  // namespace

DescriptorPost::DescriptorPost() : socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un here;
  bool made = socket_.get() >= 0 && getrandom(&address_, sizeof address_, 0) == sizeof address_;
  if (made) {
    const socklen_t length = fill(here, address_.name);
    made = bind(socket_.get(), reinterpret_cast<const sockaddr*>(&here), length) == 0;
  }
  if (!made) throw Fault(fmt::format("cannot create the Unix socket for the ranks of this host: {}", std::strerror(errno)));
}

bool DescriptorPost::send(const Address& to, int rank, int64_t bytes, int fd) const {
  Envelope envelope{to.secret, bytes, rank, fd >= 0};
  iovec part{&envelope, sizeof envelope};
  sockaddr_un there;
  msghdr message{};
  message.msg_name = &there;
  message.msg_namelen = fill(there, to.name);
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  Control control{};
  if (fd >= 0) {
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  if (sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return true;
  if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS) return false;
  throw Fault(fmt::format("cannot send to a rank of this host: {}", std::strerror(errno)));
}

DescriptorPost::Letter DescriptorPost::receive_if_any() const {
  Envelope envelope;
  iovec part{&envelope, sizeof envelope};
  Control control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  const ssize_t got = recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) {
    if (errno == EAGAIN || errno == EINTR) return {};
    throw Fault(fmt::format("cannot receive from the ranks of this host: {}", std::strerror(errno)));
  }
  Letter letter;
  if (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    letter.descriptor = Descriptor(fd);
  }
  if (got != sizeof envelope || envelope.secret != address_.secret) return {};  // a process outside this run sent it
  if (envelope.has_descriptor != 0 && letter.descriptor.get() < 0) {
    throw Fault("a file descriptor from another rank did not arrive; raise the limit of open files (ulimit -n)");
  }
  letter.rank = envelope.rank;
  letter.bytes = envelope.bytes;
  return letter;
}

DescriptorPost::Letter DescriptorPost::receive(const WaitControl& control) const {
  static const std::string channel = "start";
  Backoff patience(control, "shared memory", channel, -1);
  while (true) {
    Letter letter = receive_if_any();
    if (letter.rank >= 0) return letter;
    if (!patience.looks_again()) patience.nap();
  }
}

}  // namespace megalith
