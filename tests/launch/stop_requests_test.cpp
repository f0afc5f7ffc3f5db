#include "launch/stop_requests.h"

#include <gtest/gtest.h>

#include <csignal>

namespace megalith::launch {
namespace {

TEST(StopRequests, CountsCtrlCAndSigtermAndAllOthersAsOne) {
  StopRequests requests;
  EXPECT_EQ(requests.count(), 0);
  std::raise(SIGHUP);
  EXPECT_EQ(requests.count(), 1);
  std::raise(SIGPIPE);
  std::raise(SIGHUP);
  EXPECT_EQ(requests.count(), 1);
  std::raise(SIGTERM);
  EXPECT_EQ(requests.count(), 1) << "the first request of a person";
  std::raise(SIGINT);
  EXPECT_EQ(requests.count(), 2);
  EXPECT_EQ(requests.first(), SIGHUP);
}

TEST(StopRequests, WhatTheParentIgnoresStaysIgnored) {
  const auto former = std::signal(SIGHUP, SIG_IGN);
  {
    StopRequests requests;
    std::raise(SIGHUP);
    EXPECT_EQ(requests.count(), 0);
  }
  std::signal(SIGHUP, former);
}

}  // namespace
}  // namespace megalith::launch
