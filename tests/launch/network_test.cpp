#include "launch/network.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"

namespace megalith::launch {
namespace {

const std::vector<OwnAddress> kOwn{{"lo", "127.0.0.1", 8}, {"eth0", "192.168.7.2", 24}, {"ib0", "10.1.0.4", 16},
                                   {"cloud", "172.16.0.9", 32}};

std::string refusal(const std::string& wanted, const std::vector<Route>& routes) {
  try {
    choose_network(wanted, kOwn, routes);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Network, IsWhatLeadsToTheOtherHosts) {
  const std::vector<Route> routes{{"me", "192.168.7.2", "192.168.7.2"},
                                  {"b", "10.1.0.5", "10.1.0.4"},
                                  {"c", "10.1.9.5", "10.1.0.4"}};
  const Network network = choose_network("", kOwn, routes);
  EXPECT_EQ(network.address, "10.1.0.4");
  EXPECT_EQ(network.included, "10.1.0.0/16");
}

TEST(Network, HasHostsBehindARouterOneByOne) {
  const Network routed = choose_network("", kOwn, {{"b", "10.1.0.5", "10.1.0.4"}, {"c", "10.2.0.5", "10.1.0.4"}});
  EXPECT_EQ(routed.included, "10.1.0.0/16,10.2.0.5/32");
  const Network cloud = choose_network("cloud", kOwn, {{"b", "172.16.0.10", "172.16.0.9"}});
  EXPECT_EQ(cloud.included, "172.16.0.9/32,172.16.0.10/32");
}

TEST(Network, IsTheOneThatTheUserNames) {
  const std::vector<Route> routes{{"b", "192.168.7.3", "192.168.7.2"}};
  for (const char* name : {"ib0", "10.1.0.4"}) {
    const Network network = choose_network(name, kOwn, routes);
    EXPECT_EQ(network.address, "10.1.0.4");
    EXPECT_EQ(network.included, "10.1.0.0/16") << "the names' own network stays out";
  }
}

TEST(Network, OfNamesOfOneMachineIsLoopback) {
  const std::vector<Route> routes{{"localhost", "127.0.0.1", "127.0.0.1"}, {"n2", "127.0.1.1", "127.0.0.1"}};
  EXPECT_EQ(choose_network("", kOwn, routes).included, kLoopback);
}

TEST(Network, IsNotGuessed) {
  EXPECT_NE(refusal("", {}).find("--interface eth0"), std::string::npos);
  EXPECT_NE(refusal("wlan0", {}).find("eth0 (192.168.7.2)"), std::string::npos);
  const std::string two = refusal("", {{"b", "10.1.0.5", "10.1.0.4"}, {"c", "192.168.7.9", "192.168.7.2"}});
  EXPECT_NE(two.find("192.168.7.2 for c"), std::string::npos) << two;
}

TEST(Network, KnowsTheAddressesOfThisHost) {
  const auto own = own_addresses();
  EXPECT_NE(std::find(own.begin(), own.end(), OwnAddress{"lo", "127.0.0.1", 8}), own.end());
  const auto routes = routes_to({"localhost", "no-such-host.invalid"});
  ASSERT_EQ(routes.size(), 1u);
  EXPECT_EQ(routes[0].from, "127.0.0.1");
}

}  // namespace
}  // namespace megalith::launch
