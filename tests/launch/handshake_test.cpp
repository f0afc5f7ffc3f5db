#include "launch/handshake.h"

#include <gtest/gtest.h>

namespace megalith::launch {
namespace {

TEST(Handshake, BothEndsProveTheSecretWithoutSendingIt) {
  const std::string secret = new_secret();
  const SupervisorHandshake supervisor(secret);
  MonitorHandshake monitor(secret, "host-b");
  const auto answer = monitor.answer(supervisor.greeting());
  ASSERT_TRUE(answer);
  const auto admitted = supervisor.admit(*answer);
  ASSERT_TRUE(admitted);
  EXPECT_EQ(admitted->host, "host-b");
  EXPECT_TRUE(monitor.accepts(admitted->reply));
  for (const std::string& line : {supervisor.greeting(), *answer, admitted->reply}) {
    EXPECT_EQ(line.find(secret), std::string::npos) << line;
    EXPECT_LT(line.size(), kLongestHello);
  }
}

TEST(Handshake, AnotherSecretIsRefusedByBothEnds) {
  const SupervisorHandshake supervisor(new_secret());
  MonitorHandshake stranger(new_secret(), "b");
  EXPECT_FALSE(supervisor.admit(*stranger.answer(supervisor.greeting())));

  const SupervisorHandshake impostor("guessed");  // it admits the monitor, but cannot prove that it knows the secret
  MonitorHandshake monitor("secret", "b");
  EXPECT_FALSE(impostor.admit(*monitor.answer(impostor.greeting())));
  MonitorHandshake other("guessed", "b");
  EXPECT_FALSE(monitor.accepts(impostor.admit(*other.answer(impostor.greeting()))->reply));
}

TEST(Handshake, AProofIsWorthNothingElsewhere) {
  const SupervisorHandshake first("secret"), second("secret");
  MonitorHandshake monitor("secret", "b");
  const std::string answer = *monitor.answer(first.greeting());
  EXPECT_FALSE(second.admit(answer)) << "overheard, and sent to another connection";
  const std::string reply = first.admit(answer)->reply;
  MonitorHandshake later("secret", "b");
  later.answer(first.greeting());
  EXPECT_FALSE(later.accepts(reply));
  // A supervisor that sends back the monitor's own proof.
  EXPECT_FALSE(monitor.accepts(answer));
  // A host name that differs from the one in the proof.
  std::string renamed = answer;
  renamed.replace(renamed.find("\"b\""), 3, "\"c\"");
  EXPECT_FALSE(first.admit(renamed));
}

TEST(Handshake, WhatIsNoMessageIsRefusedQuietly) {
  const SupervisorHandshake supervisor("secret");
  for (const char* line : {"", "{", "[]", "3", "null", R"({"token": 5})",
                           R"({"host": 5, "challenge": [], "proof": {}})",
                           R"({"host": "b", "challenge": "x", "proof": "y"})", R"({"host": "b", "proof": null})", "\xff\xfe"})
    EXPECT_FALSE(supervisor.admit(line)) << line;
  MonitorHandshake monitor("secret", "b");
  for (const char* line : {"", "[]", R"({"challenge": 5})", R"({"challenge": "short"})"})
    EXPECT_FALSE(monitor.answer(line)) << line;
  EXPECT_FALSE(monitor.accepts(R"({"proof": 5})"));
}

}  // namespace
}  // namespace megalith::launch
