#include "launch/mpirun.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"

namespace megalith::launch {
namespace {

const char* nothing_set(const char*) { return nullptr; }
const char* btl_set(const char* name) { return std::string_view(name) == "OMPI_MCA_btl" ? "tcp,self" : nullptr; }
const char* preload_set(const char* name) { return std::string_view(name) == "LD_PRELOAD" ? "theirs.so" : nullptr; }
const char* network_set(const char* name) {
  return std::string_view(name) == "OMPI_MCA_btl_tcp_if_include" ? "ib0" : nullptr;
}

std::string value_of(const Variables& settings, const std::string& name) {
  for (const auto& [key, text] : settings)
    if (key == name) return text;
  return "";
}

TEST(Mpirun, NamesHostsWithTheirSlots) {
  const auto hosts = parse_hosts("a:2,b,c-3.net:10");
  ASSERT_EQ(hosts.size(), 3u);
  EXPECT_EQ(hosts[1].slots, 1);
  EXPECT_EQ(hosts[2].host, "c-3.net");
  const auto words = mpirun_command("/usr/bin/mpirun",
                                    {13, hosts, true, "10.1.0.0/16", {"megalith", "train"}, "/tmp/x", {{"A", "secret"}}});
  const auto host = std::find(words.begin(), words.end(), "--host");
  ASSERT_NE(host, words.end());
  EXPECT_EQ(*(host + 1), "a:2,b:1,c-3.net:10");
  EXPECT_EQ(words.back(), "train");
  for (const std::string& word : words) EXPECT_EQ(word.find("secret"), std::string::npos) << "everybody can read " << word;
}

TEST(Mpirun, RefusesHostsThatAreNone) {
  for (const char* text : {"a:0", "a:", ":2", "a:2x", "a:-1"}) EXPECT_THROW(parse_hosts(text), UserError) << text;
  EXPECT_TRUE(parse_hosts("").empty());
}

TEST(Mpirun, OnOneHostOnlySharedMemoryAndLoopback) {
  const MpirunCall one{2, {}, false, kLoopback, {"x"}, "/f", {}};
  auto value = [&](const char* name, bool root, auto get) {
    return value_of(mpirun_environment(one, "/g.so", root, get), name);
  };
  EXPECT_EQ(value("OMPI_MCA_btl", false, nothing_set), "self,vader");
  EXPECT_EQ(value("OMPI_MCA_oob_tcp_if_include", false, nothing_set), "127.0.0.0/8");
  EXPECT_EQ(value("LD_PRELOAD", false, nothing_set), "/g.so");
  EXPECT_EQ(value("LD_PRELOAD", false, preload_set), "/g.so:theirs.so");
  EXPECT_EQ(value("MEGALITH_BIND", false, network_set), "127.0.0.0/8") << "on one host there is no other network";
  EXPECT_EQ(value("OMPI_MCA_btl", false, btl_set), "");  // the user's setting stays
  EXPECT_EQ(value("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", true, nothing_set), "1");
  EXPECT_EQ(value("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", false, nothing_set), "");
}

TEST(Mpirun, OnSeveralHostsOnlyTheirNetwork) {
  const MpirunCall several{2, {}, true, "10.1.0.0/16,10.2.0.7/32", {"x"}, "/f", {}};
  auto value = [&](const char* name, auto get) {
    return value_of(mpirun_environment(several, "/g.so", false, get), name);
  };
  EXPECT_EQ(value("OMPI_MCA_btl", nothing_set), "");
  for (const char* name : {"OMPI_MCA_oob_tcp_if_include", "OMPI_MCA_btl_tcp_if_include", "MEGALITH_BIND"})
    EXPECT_EQ(value(name, nothing_set), several.networks) << name;
  EXPECT_EQ(value("OMPI_MCA_orte_launch_agent", nothing_set),
            "env LD_PRELOAD=/g.so MEGALITH_BIND=10.1.0.0/16,10.2.0.7/32 orted");
  // If the user has given OpenMPI networks, they stay, and the guard is not used.
  EXPECT_EQ(value("OMPI_MCA_btl_tcp_if_include", network_set), "");
  EXPECT_EQ(value("LD_PRELOAD", network_set), "");
  EXPECT_EQ(value("OMPI_MCA_orte_launch_agent", network_set), "");
}

const std::string kDashes(74, '-');

TEST(MpirunSays, TellsItsOwnWordsFromTheRanks) {
  MpirunSays says;
  std::string ranks;
  const std::string text =
      "step 1\n[vm:12] 3 more processes have sent help message\n[vm][[1302,1],0][btl_tcp.c:559] recv(17) failed\n"
      "2 total processes killed (some possibly by mpirun during cleanup)\n[a note of a rank]\nstep 2\n" +
      kDashes + "\nmpirun noticed that process rank 1 with PID 0 on node vm exited on signal 9 (Killed).\n" + kDashes +
      "\nlast\npart";
  for (char c : text) ranks += says.take(std::string(1, c));  // the result must not depend on the portions
  ranks += says.rest();
  EXPECT_EQ(ranks, "step 1\n[a note of a rank]\nstep 2\nlast\npart");
  ASSERT_TRUE(says.death());
  EXPECT_EQ(says.death()->rank, 1);
  EXPECT_EQ(says.death()->signal, 9);
  EXPECT_EQ(says.death()->host, "vm");
}

TEST(MpirunSays, AnExitCodeIsNoDeath) {
  MpirunSays says;
  says.take(kDashes +
            "\nThere are not enough slots available in the system to satisfy the 4\nslots that were requested:\n\n  x\n" +
            kDashes + "\n");
  EXPECT_FALSE(says.death());
  EXPECT_EQ(says.first_words(),
            "There are not enough slots available in the system to satisfy the 4 slots that were requested:");
}

}  // namespace
}  // namespace megalith::launch
