#include "launch/door.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "launch/environment.h"
#include "launch/host_link.h"
#include "launch/message_line.h"

namespace megalith::launch {
namespace {

constexpr const char* kHere = "127.0.0.1";

// A connection that need not come from a process of ours.
class Stranger {
 public:
  explicit Stranger(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_port = htons(static_cast<uint16_t>(port));
    ::inet_pton(AF_INET, kHere, &there.sin_addr);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&there), sizeof there), 0);
  }
  ~Stranger() { ::close(socket_); }
  void say(const std::string& text) const {
    EXPECT_EQ(::send(socket_, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  // True if the other end has closed the connection. Reads the data before that.
  bool is_closed() const {
    char buffer[4096];
    for (ssize_t got; (got = ::recv(socket_, buffer, sizeof buffer, MSG_DONTWAIT)) != 0;)
      if (got < 0) return errno != EAGAIN;
    return true;
  }

 private:
  int socket_;
};

std::vector<Door::Guest> wait_for_guest(Door& door) {
  std::vector<Door::Guest> guests;
  for (int look = 0; look < 2000 && guests.empty(); look++) {
    guests = door.admit(0);
    if (guests.empty()) ::usleep(1000);
  }
  return guests;
}

TEST(Door, ListensOnItsAddressOnly) {
  Door door(kHere, "secret");
  std::vector<pollfd> wait;
  door.add_to(wait);
  ASSERT_EQ(wait.size(), 1u);
  sockaddr_in bound{};
  socklen_t size = sizeof bound;
  ASSERT_EQ(::getsockname(wait[0].fd, reinterpret_cast<sockaddr*>(&bound), &size), 0);
  EXPECT_EQ(bound.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  EXPECT_EQ(ntohs(bound.sin_port), door.port());
  EXPECT_THROW(Door("192.0.2.1", "secret"), Fault) << "not an address of this host";
}

TEST(Door, AdmitsAMonitorThatKnowsTheSecret) {
  Door door(kHere, "secret");
  const SupervisorAddress address{"run", "host", kHere, door.port(), "secret"};
  const SupervisorAddress parsed = SupervisorAddress::parse(address.text());
  auto connected = std::async(std::launch::async, [&] { return connect_to_supervisor(parsed); });
  const auto guests = wait_for_guest(door);
  ASSERT_EQ(guests.size(), 1u);
  EXPECT_EQ(guests[0].host, host_name());
  EXPECT_EQ(door.strangers(), 0u);
  MessageLine here(guests[0].socket), there(connected.get());
  there.send({{"ranks", 3}});
  EXPECT_EQ(here.receive().size(), 1u);
}

TEST(Door, AMonitorLeavesASupervisorThatDoesNotKnowTheSecret) {
  Door door(kHere, "guessed");
  const SupervisorAddress address{"run", "host", kHere, door.port(), "secret"};
  auto connected = std::async(std::launch::async, [&] { return connect_to_supervisor(address); });
  while (connected.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) EXPECT_TRUE(door.admit(0).empty());
  EXPECT_THROW(connected.get(), Fault);
}

TEST(Door, StrangersAreShownOutAndCostLittle) {
  Door door(kHere, "secret");
  const Stranger wrong_type(door.port()), too_long(door.port()), early(door.port()), silent(door.port());
  wrong_type.say("{\"token\": 5}\n");
  too_long.say(std::string(64 << 10, 'x'));
  early.say("{\"host\": \"b\"}\n{\"ranks\": []}\n");
  for (int look = 0; look < 2000 && door.strangers() != 1; look++) {
    EXPECT_TRUE(door.admit(0).empty());
    ::usleep(1000);
  }
  EXPECT_EQ(door.strangers(), 1u) << "the silent one";
  EXPECT_TRUE(wrong_type.is_closed() && too_long.is_closed() && early.is_closed());
  EXPECT_FALSE(silent.is_closed());
  door.admit(kHandshake_s + 1);
  EXPECT_EQ(door.strangers(), 0u);
  EXPECT_TRUE(silent.is_closed());
}

TEST(Door, ManyStrangersDoNotKeepAMonitorOut) {
  Door door(kHere, "secret");
  std::list<Stranger> crowd;
  for (size_t i = 0; i < kMostStrangers + 5; i++) crowd.emplace_back(door.port());
  door.admit(0);
  EXPECT_EQ(door.strangers(), kMostStrangers);
  const SupervisorAddress address{"run", "host", kHere, door.port(), "secret"};
  auto connected = std::async(std::launch::async, [&] { return connect_to_supervisor(address); });
  std::vector<Door::Guest> guests;
  // The crowd is past its time. The monitor has its whole time: its answer may be late on a busy machine.
  for (int tries = 0; guests.empty() && tries < 20000; tries++) {
    guests = door.admit(kHandshake_s + 1);
    ::usleep(1000);
  }
  ASSERT_EQ(guests.size(), 1u);
  ::close(guests[0].socket);
  ::close(connected.get());
}

TEST(MessageLine, ReadsNoMoreThanALine) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  MessageLine here(pair[0]);
  // The sender writes as long as the receiver reads.
  auto sent = std::async(std::launch::async, [&] {
    const std::string part(1 << 20, 'x');
    size_t bytes = 0;
    for (ssize_t got; bytes < 64 * kLongestLine && (got = ::send(pair[1], part.data(), part.size(), MSG_NOSIGNAL)) > 0;)
      bytes += static_cast<size_t>(got);
    ::close(pair[1]);
    return bytes;
  });
  while (here.open()) EXPECT_TRUE(here.receive().empty());
  here.close();
  EXPECT_LT(sent.get(), 2 * kLongestLine);
}

}  // namespace
}  // namespace megalith::launch
