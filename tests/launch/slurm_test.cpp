#include "launch/slurm.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"

namespace megalith::launch {
namespace {

SlurmJob small_job() {
  SlurmJob job;
  job.name = "run";
  job.folder = "/home/me";
  job.output = "/home/me/runs/run/slurm-%j.txt";
  job.command = {"/bin/megalith", "train", "run.yaml"};
  return job;
}

TEST(Slurm, RefusesControlCharacters) {
  EXPECT_NO_THROW(batch_script(small_job()));
  const std::string evil = "x\nrm -rf ~";
  const std::vector<std::pair<const char*, std::function<void(SlurmJob&)>>> places{
      {"run.dir", [&](SlurmJob& job) { job.name = evil; }},
      {"--partition", [&](SlurmJob& job) { job.partition = evil; }},
      {"--account", [&](SlurmJob& job) { job.account = evil; }},
      {"--time", [&](SlurmJob& job) { job.time = "1:00\r"; }},
      {"--sbatch", [&](SlurmJob& job) { job.options = {"--constraint=avx512", evil}; }},
      {"run.dir", [&](SlurmJob& job) { job.output = "/home/" + evil; }},
      {"current folder", [&](SlurmJob& job) { job.folder = "/home/\x1b[2J"; }},
      {"command line", [&](SlurmJob& job) { job.command.push_back("run.dir=" + evil); }},
  };
  for (const auto& [key, spoil] : places) {
    SlurmJob job = small_job();
    spoil(job);
    try {
      batch_script(job);
      ADD_FAILURE() << key;
    } catch (const UserError& error) {
      EXPECT_EQ(error.parts.key, key);
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << "the message shows it escaped";
    }
  }
}

TEST(Slurm, QuotesWhatSbatchAndTheShellRead) {
  SlurmJob job = small_job();
  job.name = "it's \"here\" #1 \\";
  job.partition = "p1,p2";
  job.folder = "/home/$(me)";
  job.command.push_back("run.dir=it's; reboot");
  const std::string script = batch_script(job);
  EXPECT_NE(script.find("\n#SBATCH --job-name=\"it's \\\"here\\\" #1 \\\\\"\n"), std::string::npos) << script;
  EXPECT_NE(script.find("\n#SBATCH --partition=p1,p2\n"), std::string::npos);
  EXPECT_NE(script.find("\ncd '/home/$(me)' || exit 2\n"), std::string::npos);
  EXPECT_NE(script.find(" 'run.dir=it'\\''s; reboot' --ranks 1\n"), std::string::npos);
}

}  // namespace
}  // namespace megalith::launch
