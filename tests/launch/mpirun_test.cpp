#include "launch/mpirun.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"

namespace megalith::launch {
namespace {

bool nothing_set(const std::string&) { return false; }
bool btl_set(const std::string& name) { return name == "OMPI_MCA_btl"; }

TEST(Mpirun, NamesHostsWithTheirSlots) {
  const auto hosts = parse_hosts("a:2,b,c-3.net:10");
  ASSERT_EQ(hosts.size(), 3u);
  EXPECT_EQ(hosts[1].slots, 1);
  EXPECT_EQ(hosts[2].host, "c-3.net");
  const auto words = mpirun_command("/usr/bin/mpirun", {13, hosts, true, {"megalith", "train"}, "/tmp/x", {{"A", "1"}}});
  const auto host = std::find(words.begin(), words.end(), "--host");
  ASSERT_NE(host, words.end());
  EXPECT_EQ(*(host + 1), "a:2,b:1,c-3.net:10");
  EXPECT_EQ(words.back(), "train");
}

TEST(Mpirun, RefusesHostsThatAreNone) {
  for (const char* text : {"a:0", "a:", ":2", "a:2x", "a:-1"}) EXPECT_THROW(parse_hosts(text), UserError) << text;
  EXPECT_TRUE(parse_hosts("").empty());
}

TEST(Mpirun, OnOneHostOnlySharedMemoryAndLoopback) {
  const MpirunCall one{2, {}, false, {"x"}, "/f", {}}, several{2, {}, true, {"x"}, "/f", {}};
  auto value = [](const auto& settings, const std::string& name) -> std::string {
    for (const auto& [key, text] : settings)
      if (key == name) return text;
    return "";
  };
  EXPECT_EQ(value(mpirun_environment(one, false, nothing_set), "OMPI_MCA_btl"), "self,vader");
  EXPECT_EQ(value(mpirun_environment(several, false, nothing_set), "OMPI_MCA_btl"), "");
  EXPECT_EQ(value(mpirun_environment(one, false, btl_set), "OMPI_MCA_btl"), "");  // the user's own stays
  EXPECT_EQ(value(mpirun_environment(one, true, nothing_set), "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1");
  EXPECT_EQ(value(mpirun_environment(one, false, nothing_set), "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "");
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
  for (char c : text) ranks += says.take(std::string(1, c));  // however it is cut
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
