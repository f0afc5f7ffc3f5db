// A run as a Slurm job: the batch script, and handing it in.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace megalith::launch {

struct SlurmJob {
  std::string name;
  int64_t nodes = 1, ranks_per_node = 1;
  std::string time, partition, account;    // empty: the cluster's defaults
  std::vector<std::string> options;        // further ones for sbatch, as they are
  std::filesystem::path folder;            // where the job runs, as this command did
  std::filesystem::path output;            // its output; %j is the job's number
  std::vector<std::string> command;        // megalith train ..., without --ranks
};

// UserError if a text has control characters: a line break would begin another line of the script.
std::string batch_script(const SlurmJob& job);

// The job's number. UserError when there is no sbatch in PATH or it refuses the script, in its own words.
std::string submit(const std::filesystem::path& script);

// Inside a job: how Slurm reaches its nodes, names or addresses. Empty if Slurm does not say.
std::vector<std::string> addresses_of_nodes();

}  // namespace megalith::launch
