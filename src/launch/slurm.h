// A run as a Slurm job: writes and submits the batch script.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace megalith::launch {

struct SlurmJob {
  std::string name;
  int64_t nodes = 1, ranks_per_node = 1;
  std::string time, partition, account;    // empty: the cluster's defaults
  std::vector<std::string> options;        // further options for sbatch, unchanged
  std::filesystem::path folder;            // working directory of the job: that of this command
  std::filesystem::path output;            // file for the job's output; %j is the job id
  std::vector<std::string> command;        // megalith train ..., without --ranks
};

// Throws UserError if a text has control characters: a line break would begin another line of the script.
std::string batch_script(const SlurmJob& job);

// Returns the job id. Throws UserError if PATH has no sbatch, or with sbatch's message if it refuses the script.
std::string submit(const std::filesystem::path& script);

// Inside a job: the names or addresses by which Slurm reaches its nodes. Empty if Slurm does not say.
std::vector<std::string> addresses_of_nodes();

}  // namespace megalith::launch
