#include "checkpoint/store.h"

#include <gtest/gtest.h>

#include <functional>

#include "checkpoint/manifest.h"
#include "checkpoint/support.h"
#include "checkpoint/verify.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
using test::flip_byte;
using test::names_in;
using test::save;
using test::TempDir;

std::vector<int64_t> steps(const fs::path& dir) {
  std::vector<int64_t> result;
  for (const Found& found : list_checkpoints(dir)) result.push_back(found.step);
  return result;
}

TEST(Store, NamesSortLikeSteps) {
  EXPECT_EQ(checkpoint_name(200), "step-00000200");
  EXPECT_EQ(step_of_name("step-00000200"), 200);
  EXPECT_EQ(step_of_name("step-1234567890"), 1234567890);
  for (const char* other : {"step-200", "step-0000020x", "step--0000001", "step-00000200.tmp-12", "last",
                            "step-99999999999999999999"})
    EXPECT_EQ(step_of_name(other), std::nullopt) << other;
}

TEST(Store, ListsNewestFirstAndOnlyCheckpoints) {
  TempDir temp;
  EXPECT_TRUE(list_checkpoints(temp / "none").empty());
  for (int64_t step : {9, 100, 20}) fs::create_directory(temp / checkpoint_name(step));
  fs::create_directory(temp / "step-00000300.tmp-77");
  write_file_atomically(temp / checkpoint_name(400), "a file");
  EXPECT_EQ(steps(temp.path()), (std::vector<int64_t>{100, 20, 9}));
}

struct Damage {
  const char* name;
  std::function<void(const fs::path&)> apply;
  const char* said;
};

TEST(Store, DamageOfAnyKindIsSaidAndThePreviousCheckpointUsed) {
  const std::vector<Damage> kinds{
      {"flipped byte", [](const fs::path& d) { flip_byte(d / "model.safetensors", 1000); },
       "model.safetensors: bytes "},
      {"flipped byte in the header", [](const fs::path& d) { flip_byte(d / "model.safetensors", 20); },
       "model.safetensors: bytes 0.."},
      {"truncated", [](const fs::path& d) { fs::resize_file(d / "model.safetensors", 2000); },
       "model.safetensors: 2000 bytes, should be "},
      {"extra bytes", [](const fs::path& d) { fs::resize_file(d / "config.json", 4); },
       "config.json: 4 bytes, should be 3"},
      {"missing file", [](const fs::path& d) { fs::remove(d / "state.json"); }, "state.json: missing"},
      {"missing manifest", [](const fs::path& d) { fs::remove(d / "manifest.json"); },
       "manifest.json: missing"},
      {"truncated manifest", [](const fs::path& d) { fs::resize_file(d / "manifest.json", 50); },
       "manifest.json: expected a valid manifest of a checkpoint"},
      {"a directory in place of a file",
       [](const fs::path& d) {
         fs::remove(d / "config.json");
         fs::create_directory(d / "config.json");
       },
       "config.json: cannot read: Is a directory"},
  };
  for (const Damage& damage : kinds) {
    SCOPED_TRACE(damage.name);
    TempDir temp;
    save(temp.path(), 100);
    damage.apply(save(temp.path(), 200));
    std::vector<std::string> said;
    auto found = latest_valid(temp.path(), [&](const std::string& m) { said.push_back(m); });
    ASSERT_TRUE(found);
    EXPECT_EQ(found->step, 100);
    ASSERT_EQ(said.size(), 1u);
    EXPECT_CONTAINS(said[0], "checkpoint step-00000200 is damaged: ");
    EXPECT_CONTAINS(said[0], damage.said);
    EXPECT_CONTAINS(said[0], "; using step-00000100 instead");
  }
}

TEST(Store, EveryFlippedByteOfEveryFileIsNoticedOrHarmless) {
  TempDir temp;
  fs::path dir = save(temp.path(), 1);
  for (const char* name : {"model.safetensors", "manifest.json", "state.json", "config.json"}) {
    std::string good = read_file(dir / name);
    for (int64_t offset = 0; offset<std::ssize(good); offset += good.size()> 2000 ? 13 : 1) {
      flip_byte(dir / name, offset);
      bool noticed = !verify(dir).ok();
      if (!noticed) {  // only spaces in the manifest may change unnoticed
        EXPECT_STREQ(name, "manifest.json");
        EXPECT_EQ(to_json(parse_manifest(read_file(dir / name), "")), good);
      }
      flip_byte(dir / name, offset);
    }
    EXPECT_TRUE(verify(dir).ok());
  }
}

TEST(Store, WhenAllAreDamagedNoneIsUsedAndThatIsSaid) {
  TempDir temp;
  for (int64_t step : {1, 2}) fs::remove(save(temp.path(), step) / "model.safetensors");
  std::vector<std::string> said;
  EXPECT_FALSE(latest_valid(temp.path(), [&](const std::string& m) { said.push_back(m); }));
  ASSERT_EQ(said.size(), 2u);
  EXPECT_CONTAINS(said[1], "step-00000001 is damaged: model.safetensors: missing; no other checkpoint is valid");
}

TEST(Verify, ListsEveryProblem) {
  TempDir temp;
  fs::path dir = save(temp.path(), 1);
  fs::remove(dir / "state.json");
  fs::resize_file(dir / "config.json", 1);
  flip_byte(dir / "model.safetensors", static_cast<int64_t>(fs::file_size(dir / "model.safetensors")) - 1);
  VerifyResult result = verify(dir);
  ASSERT_EQ(result.problems.size(), 3u);
  EXPECT_EQ(show(result.problems[0]), "config.json: 1 bytes, should be 3");
  EXPECT_CONTAINS(show(result.problems[1]), "differ from what was written");
  EXPECT_EQ(show(result.problems[2]), "state.json: missing");
  EXPECT_CONTAINS(show(verify(temp / "none").problems.at(0)), "its folder does not exist");
}

TEST(Manifest, OneThatDoesNotCoverItsFilesIsRefused) {
  auto message = [](Manifest m) { return test::user_error([&] { parse_manifest(to_json(m), "m"); }); };
  Manifest good{{{"a", 10}}, {{"a", 0, 4, 1}, {"a", 4, 6, 2}}};
  EXPECT_EQ(parse_manifest(to_json(good), "m").extents.size(), 2u);
  EXPECT_CONTAINS(message({{{"a", 10}}, {{"a", 0, 4, 1}}}), "end at byte 4 of 10");
  EXPECT_CONTAINS(message({{{"a", 10}}, {{"a", 0, 4, 1}, {"a", 5, 5, 2}}}),
                  "do not follow each other at byte 4");
  EXPECT_CONTAINS(message({{{"a", 10}}, {{"a", 0, 4, 1}, {"a", 3, 7, 2}}}), "do not follow");
  EXPECT_CONTAINS(message({{{"a", 10}}, {{"a", 0, INT64_MAX, 1}}}), "do not follow");
  EXPECT_CONTAINS(message({{{"a", 10}}, {{"a", 0, 10, 1}, {"b", 0, 1, 2}}}), "not listed");
  EXPECT_CONTAINS(message({{{"../a", 0}}, {}}), "leaves the checkpoint");
}

TEST(Store, PruningKeepsTheNewestAndDropsWhatTheRunWentBackBehind) {
  TempDir temp;
  for (int64_t step : {1, 2, 3, 4}) save(temp.path(), step);
  prune(temp.path(), 2, 4);
  EXPECT_EQ(steps(temp.path()), (std::vector<int64_t>{4, 3}));
  prune(temp.path(), 1, 3);  // 4 was damaged, so the run resumed before it and saved 3 again
  EXPECT_EQ(steps(temp.path()), (std::vector<int64_t>{3}));
  EXPECT_EQ(names_in(temp.path()).size(), 1u);
}

TEST(Store, WhatAKilledProcessDidNotPruneGoesWhenTheRunResumes) {
  TempDir temp;
  for (int64_t step = 1; step <= 5; step++) fs::create_directory(temp / checkpoint_name(step));
  prune_older(temp.path(), 2, 4);  // 5 is damaged: it stays until the run has saved that step again
  EXPECT_EQ(steps(temp.path()), (std::vector<int64_t>{5, 4, 3}));
  prune_older(temp.path(), 2, 0);  // a run that starts from the beginning
  EXPECT_EQ(steps(temp.path()), (std::vector<int64_t>{5, 4, 3}));
}

TEST(Store, LeftoversOfDeadProcessesGoAndLiveWritersStay) {
  TempDir temp;
  fs::create_directory(temp / "step-00000005.tmp-1");  // process 1 is alive, but has no lock on it
  write_file_atomically(temp / "step-00000005.tmp-1" / "model.safetensors", "half");
  fs::create_directory(temp / "mine.tmp-1");
  CheckpointWriter writer(temp / checkpoint_name(6), plan_files(test::small_tensors(), 1 << 20), {});
  EXPECT_EQ(remove_stale(temp.path()), 1);
  EXPECT_EQ(names_in(temp.path()).size(), 2u);
  EXPECT_TRUE(fs::exists(temp / "mine.tmp-1")) << "not the name of a checkpoint";
}

TEST(Store, ModelFolderIsFoundFromARunACheckpointOrItself) {
  TempDir temp;
  auto quiet = [](const std::string&) {};
  fs::path newest = save(temp / "checkpoints", 7);
  EXPECT_EQ(find_model_folder(temp.path(), quiet), newest);
  EXPECT_EQ(find_model_folder(temp / "checkpoints", quiet), newest);
  EXPECT_EQ(find_model_folder(newest, quiet), newest);
  EXPECT_CONTAINS(test::user_error([&] { find_model_folder(temp / "none", quiet); }), "no such file or folder");
  fs::create_directory(temp / "old");
  write_file_atomically(temp / "old" / "pytorch_model.bin", "");
  EXPECT_CONTAINS(test::user_error([&] { find_model_folder(temp / "old", quiet); }), "safetensors");
  fs::remove(newest / "state.json");
  EXPECT_CONTAINS(test::user_error([&] { find_model_folder(temp.path(), quiet); }), "only damaged ones");
}

}  // namespace
}  // namespace megalith
