#include "run/run_directory.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "temp_dir.h"

namespace megalith {
namespace {

std::set<std::string> files_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

TEST(RunDirectory, WhatAKilledProcessLeftHalfWrittenGoesWithTheNextStart) {
  const TempDir dir;
  for (const char* folder : {"analysis", "data", "checkpoints", "plan.json.9.tmp"})
    std::filesystem::create_directory(dir / folder);
  for (const char* name : {"config.yaml", "config.yaml.123.tmp", "metrics.jsonl.aB3xYz.tmp", "analysis/begun_with.json.7.tmp",
                           "data/0f.partial.json.7.tmp"})
    dir.write(name, "half");
  // Names of files that the program must not remove.
  const std::set<std::string> others{"notes.txt.1.tmp", "my.config.yaml.1.tmp", "config.yaml.tmp", "config.yaml.1.tmp.old"};
  for (const std::string& name : others) dir.write(name, "theirs");
  dir.write("data/text.2024.tmp", "theirs");
  std::filesystem::create_symlink(dir / "config.yaml", dir / "trace.json.1.tmp");
  { const RunDirectory looks_on(dir.path(), /*leads=*/false); }
  EXPECT_TRUE(files_in(dir.path()).contains("config.yaml.123.tmp")) << "without the lock";
  const RunDirectory directory(dir.path());
  std::set<std::string> expected{"analysis", "data", "checkpoints", "config.yaml", "plan.json.9.tmp", "trace.json.1.tmp", ".lock"};
  expected.insert(others.begin(), others.end());
  EXPECT_EQ(files_in(dir.path()), expected);
  EXPECT_EQ(files_in(dir / "analysis"), std::set<std::string>{});
  EXPECT_EQ(files_in(dir / "data"), std::set<std::string>{"text.2024.tmp"});
}

TEST(RunDirectory, ThatIsRefusedLosesNothing) {
  const TempDir dir;
  const RunDirectory directory(dir.path());
  dir.write("config.yaml.123.tmp", "of the process that trains there");
  EXPECT_THROW(RunDirectory(dir.path()), UserError);
  EXPECT_TRUE(files_in(dir.path()).contains("config.yaml.123.tmp"));
}

}  // namespace
}  // namespace megalith
