#include "base/stop_signals.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

namespace megalith {
namespace {

TEST(StopSignals, EachAsksToStopAndIsNamed) {
  const struct {
    int signal;
    const char* name;
  } all[] = {{SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}, {SIGPIPE, "SIGPIPE"}};
  for (const auto& [signal, name] : all) {
    const StopSignals signals("");
    EXPECT_FALSE(signals.stop_requested());
    EXPECT_EQ(signals.signal(), "");
    std::raise(signal);
    EXPECT_TRUE(signals.stop_requested()) << name;
    EXPECT_EQ(signals.signal(), name);
  }
}

TEST(StopSignals, AClosedTerminalAndABrokenPipeMayRepeat) {
  const StopSignals signals("");
  for (int time = 0; time < 3; time++) {
    std::raise(SIGHUP);
    std::raise(SIGPIPE);
  }
  std::raise(SIGTERM);  // the first signal sent by a person
  EXPECT_EQ(signals.signal(), "SIGHUP");
}

TEST(StopSignals, ASecondRequestEndsTheProcess) {
  const auto ask_twice = [] {
    const StopSignals signals("");
    std::raise(SIGHUP);
    std::raise(SIGINT);
    std::raise(SIGTERM);
  };
  EXPECT_EXIT(ask_twice(), testing::ExitedWithCode(130), "");
}

TEST(StopSignals, ARankThatIsDoneIgnoresThem) {
  const auto ask = [](AfterStop after) {
    { const StopSignals signals("", after); }
    std::raise(SIGTERM);
    std::exit(0);
  };
  EXPECT_EXIT(ask(AfterStop::ignore), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(ask(AfterStop::restore), testing::KilledBySignal(SIGTERM), "");
}

TEST(StopSignals, WhatTheParentIgnoresStaysIgnored) {
  for (const int signal : {SIGHUP, SIGPIPE}) {
    const auto former = std::signal(signal, SIG_IGN);
    {
      const StopSignals signals("");
      std::raise(signal);
      EXPECT_FALSE(signals.stop_requested()) << signal_name(signal);
    }
    EXPECT_TRUE(is_ignored(signal)) << "the former meaning did not come back";
    std::signal(signal, former);
  }
}

}  // namespace
}  // namespace megalith
