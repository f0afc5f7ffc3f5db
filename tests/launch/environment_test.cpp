#include "launch/environment.h"

#include <gtest/gtest.h>

#include <map>

namespace megalith::launch {
namespace {

Environment under(const std::map<std::string, std::string>& variables) {
  return environment([&](const char* name) -> const char* {
    auto it = variables.find(name);
    return it == variables.end() ? nullptr : it->second.c_str();
  });
}

TEST(Environment, AProcessThatNobodyStartedIsAlone) {
  EXPECT_EQ(under({}).role, Role::alone);
  EXPECT_EQ(under({}).size, 1);
}

TEST(Environment, MpirunSaysWhichRankThisIs) {
  std::map<std::string, std::string> variables{{"OMPI_COMM_WORLD_RANK", "5"}, {"OMPI_COMM_WORLD_SIZE", "8"},
                                               {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}};
  Environment joined = under(variables);
  EXPECT_EQ(joined.role, Role::joined);
  EXPECT_EQ(joined.rank, 5);
  EXPECT_EQ(joined.size, 8);
  EXPECT_EQ(joined.local_rank, 1);
  EXPECT_EQ(joined.local_size, 4);
  variables[kSupervisorVariable] = "{}";
  EXPECT_EQ(under(variables).role, Role::supervised);
}

TEST(Environment, SrunSaysIt) {
  Environment e = under({{"SLURM_JOB_ID", "7"},
                         {"SLURM_STEP_ID", "0"},
                         {"SLURM_STEP_NUM_TASKS", "11"},
                         {"SLURM_PROCID", "10"},
                         {"PMIX_RANK", "10"},
                         {"SLURM_LOCALID", "2"},
                         {"SLURM_NODEID", "2"},
                         {"SLURM_STEP_TASKS_PER_NODE", "4(x2),3"}});
  EXPECT_EQ(e.role, Role::joined);
  EXPECT_EQ(e.rank, 10);
  EXPECT_EQ(e.size, 11);
  EXPECT_EQ(e.local_rank, 2);
  EXPECT_EQ(e.local_size, 3);
}

TEST(Environment, ABatchScriptIsNoRank) {
  EXPECT_EQ(under({{"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}).role, Role::alone);
  // The shell of an interactive allocation is a step of one task.
  EXPECT_EQ(under({{"SLURM_STEP_ID", "4294967290"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}}).role,
            Role::alone);
}

TEST(Environment, WhatIsNoNumberIsNotSet) {
  EXPECT_EQ(under({{"OMPI_COMM_WORLD_RANK", "two"}}).role, Role::alone);
  EXPECT_EQ(under({{"OMPI_COMM_WORLD_RANK", "-1"}}).role, Role::alone);
}

}  // namespace
}  // namespace megalith::launch
