#include "checkpoint/writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <thread>

#include "checkpoint/file_handle.h"
#include "checkpoint/reader.h"
#include "checkpoint/support.h"
#include "checkpoint/verify.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
using test::bytes_of;
using test::names_in;
using test::ramp;
using test::save;
using test::TempDir;

std::vector<float> read_all(const fs::path& dir, const TensorSpec& spec) {
  std::vector<float> values(static_cast<size_t>(spec.elements()));
  WeightSource::open_model(dir).read_f32(spec.name, 0, values);
  return values;
}

TEST(Checkpoint, WrittenInPiecesInAnyOrderReadsBackWhole) {
  TempDir temp;
  std::vector<TensorSpec> tensors = test::small_tensors();
  std::vector<float> weight = ramp(1000, 1), bias = ramp(3, 7);
  {
    CheckpointWriter writer(temp / "c", plan_files(tensors, 1 << 20),
                            {{"config.json", "{\"a\": 1}"}, {"empty", ""}});
    writer.write("model.safetensors", "layer.bias", 0, bytes_of(bias));
    writer.write("model.safetensors", "layer.weight", 400, bytes_of(weight).subspan(1600));
    EXPECT_FALSE(fs::exists(temp / "c")) << "nothing is visible before commit";
    writer.write("model.safetensors", "layer.weight", 0, bytes_of(weight).first(1600));
    writer.commit({{"step", 5}});
  }
  EXPECT_EQ(read_all(temp / "c", tensors[0]), weight);
  EXPECT_EQ(read_all(temp / "c", tensors[1]), bias);
  EXPECT_EQ(read_state(temp / "c").at("step"), 5);
  EXPECT_EQ(read_file(temp / "c" / "config.json"), "{\"a\": 1}");
  EXPECT_EQ(names_in(temp.path()), std::vector<std::string>{"c"});
  VerifyResult result = verify(temp / "c");
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.files, 4);  // model, config, empty, state
}

TEST(Checkpoint, TwoThreadsWriteOneFileAtOnce) {
  TempDir temp;
  const int64_t rows = 512, columns = 4096;  // 8 MiB
  TensorSpec spec{"w", DType::f32, {rows, columns}};
  std::vector<float> values = ramp(rows * columns, 0);
  CheckpointWriter writer(temp / "c", {{"model.safetensors", {spec}}}, {});
  auto write_rows = [&](int64_t first) {
    for (int64_t row = first; row < rows; row += 2)
      writer.write("model.safetensors", "w", row * columns,
                   bytes_of(values).subspan(static_cast<size_t>(row * columns * 4), columns * 4));
  };
  std::thread even(write_rows, 0), odd(write_rows, 1);
  even.join();
  odd.join();
  EXPECT_GE(writer.bytes_written(), spec.bytes());
  writer.commit(nullptr);
  EXPECT_TRUE(verify(temp / "c").ok());
  EXPECT_EQ(read_all(temp / "c", spec), values);
  EXPECT_FALSE(fs::exists(temp / "c" / "state.json")) << "a null state is none";
}

TEST(Checkpoint, LargeModelIsSplitIntoShardsWithAnIndex) {
  TempDir temp;
  std::vector<TensorSpec> tensors;
  for (int i = 0; i < 5; i++) tensors.push_back({fmt::format("t{}", i), DType::f32, {100}});
  tensors.push_back({"big", DType::f32, {1000}});
  std::vector<FileSpec> files = plan_files(tensors, 1000);
  ASSERT_EQ(files.size(), 4u);  // two, two, one, and the big one alone
  EXPECT_EQ(files[0].file, "model-00001-of-00004.safetensors");
  EXPECT_EQ(files[3].tensors[0].name, "big");
  CheckpointWriter writer(temp / "c", files, index_file(files));
  for (const FileSpec& file : files)
    for (const TensorSpec& spec : file.tensors)
      writer.write(file.file, spec.name, 0,
                   bytes_of(ramp(spec.elements(), static_cast<float>(spec.name.back()))));
  writer.commit(nullptr);
  WeightSource source = WeightSource::open_model(temp / "c");
  EXPECT_NO_THROW(source.check_matches(tensors));
  EXPECT_EQ(read_all(temp / "c", tensors[3])[0], '3');
}

TEST(Checkpoint, OneFileIsNumberedOnlyWhenAsked) {
  EXPECT_EQ(plan_files(test::small_tensors(), 1 << 20)[0].file, "model.safetensors");
  EXPECT_EQ(plan_files(test::small_tensors(), 1 << 20, "optimizer", Numbering::always)[0].file,
            "optimizer-00001-of-00001.safetensors");
  EXPECT_TRUE(plan_files({}, 1 << 20).empty());
  EXPECT_TRUE(index_file(plan_files(test::small_tensors(), 1 << 20)).empty());
}

TEST(Checkpoint, AbandonedWriterLeavesNothing) {
  TempDir temp;
  {
    CheckpointWriter writer(temp / "c", plan_files(test::small_tensors(), 1 << 20), {});
    const std::vector<std::string> names = names_in(temp.path());
    ASSERT_EQ(names.size(), 1u);
    EXPECT_TRUE(names[0].starts_with("c.tmp-")) << names[0];
  }
  EXPECT_TRUE(fs::is_empty(temp.path()));
}

TEST(Checkpoint, TwoWritersOfOneDirectoryDoNotMix) {
  TempDir temp;
  CheckpointWriter first(temp / "c", plan_files(test::small_tensors(), 1 << 20), {});
  CheckpointWriter second(temp / "c", plan_files(test::small_tensors(), 1 << 20), {});
  EXPECT_NE(first.aside(), second.aside());
  EXPECT_EQ(names_in(temp.path()).size(), 2u);
}

TEST(Checkpoint, WhatAnotherProcessPlantsIsNotWrittenTo) {
  TempDir temp;
  write_file_atomically(temp / "victim", "precious");
  fs::path left = temp / fmt::format("{}.tmp-{}", checkpoint_name(1), ::getpid());
  fs::create_directory(left);
  fs::create_symlink(temp / "victim", left / "manifest.json");
  EXPECT_THROW(FileHandle::create(left / "manifest.json"), Fault);
  EXPECT_TRUE(verify(save(temp.path(), 1)).ok());
  EXPECT_EQ(read_file(temp / "victim"), "precious");
}

TEST(Checkpoint, ForgottenOrDoubledElementsAreOurBug) {
  TempDir temp;
  std::vector<float> bias = ramp(3, 0), weight = ramp(1000, 0);
  {
    CheckpointWriter writer(temp / "c", plan_files(test::small_tensors(), 1 << 20), {});
    writer.write("model.safetensors", "layer.weight", 0, bytes_of(weight));
    writer.write("model.safetensors", "layer.bias", 0, bytes_of(bias).first(8));
    EXPECT_THROW(writer.commit(nullptr), Bug);
    EXPECT_THROW(writer.write("model.safetensors", "layer.bias", 2, bytes_of(bias)), Bug) << "beyond its end";
    EXPECT_THROW(writer.write("model.safetensors", "layer.bias", 0, bytes_of(bias).first(3)), Bug)
        << "half an element";
    writer.write("model.safetensors", "layer.bias", 1, bytes_of(bias).first(8));
    EXPECT_THROW(writer.commit(nullptr), Bug) << "element 1 twice";
  }
  EXPECT_TRUE(fs::is_empty(temp.path()));
}

TEST(Checkpoint, ANewOneReplacesADamagedOneOfTheSameStep) {
  TempDir temp;
  fs::path dir = save(temp.path(), 3);
  fs::remove(dir / "manifest.json");
  save(temp.path(), 3);
  EXPECT_TRUE(verify(dir).ok());
  EXPECT_EQ(names_in(temp.path()), std::vector<std::string>{checkpoint_name(3)});
}

TEST(Checkpoint, AUsersFolderWithFilesIsNotANewFolder) {
  TempDir temp;
  EXPECT_NO_THROW(check_new_folder(temp / "none"));
  EXPECT_NO_THROW(check_new_folder(temp.path()));
  write_file_atomically(temp / "note.txt", "mine");
  EXPECT_CONTAINS(test::user_error([&] { check_new_folder(temp.path()); }), "one with files in it");
  EXPECT_CONTAINS(test::user_error([&] { check_new_folder(temp / "note.txt"); }), "got a file");
}

// Runs `work` in a child process. Returns true if `work` returned true there.
template <class Work>
bool in_child(Work work) {
  pid_t child = ::fork();
  if (child == 0) {
    bool good = false;
    try {
      good = work();
    } catch (const std::exception& error) {
      fmt::print(stderr, "child: {}\n", error.what());
    }
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Gives this process a mount table of its own, and mounts a file system of `bytes` bytes on `dir`. Both end with the
// process.
bool mount_tiny_disk(const fs::path& dir, int64_t bytes) {
  int kinds = CLONE_NEWNS | (::geteuid() == 0 ? 0 : CLONE_NEWUSER);
  return ::unshare(kinds) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("tiny", dir.c_str(), "tmpfs", 0, fmt::format("size={}", bytes).c_str()) == 0;
}

TEST(Checkpoint, FullDiskIsAFaultThatLeavesTheOldCheckpointValid) {
  TempDir temp;
  if (!in_child([&] { return mount_tiny_disk(temp.path(), 1 << 20); }))
    GTEST_SKIP() << "needs the right to mount a small file system";
  EXPECT_TRUE(in_child([&] {
    if (!mount_tiny_disk(temp.path(), 1 << 20)) return false;
    save(temp.path(), 1);
    std::string message;
    try {
      CheckpointWriter writer(temp / checkpoint_name(2),
                              {{"model.safetensors", {{"w", DType::f32, {1 << 20}}}}}, {});
    } catch (const Fault& fault) {
      message = fault.what();
    }
    bool said = message.find("model.safetensors: cannot write: No space left on device") != std::string::npos;
    if (!said) fmt::print(stderr, "said: {}\n", message);
    auto found = latest_valid(temp.path(), [](const std::string&) {});
    return said && found && found->step == 1 && names_in(temp.path()).size() == 1;
  }));
}

TEST(Checkpoint, AWriteThatFailsSpoilsTheWriterAndIsCleanedUp) {
  TempDir temp;
  save(temp.path(), 1);
  EXPECT_TRUE(in_child([&] {
    std::vector<float> values = ramp(1 << 18, 0);  // 1 MiB
    std::string first, second, at_commit;
    {
      CheckpointWriter writer(temp / checkpoint_name(2),
                              {{"model.safetensors", {{"w", DType::f32, {1 << 19}}}}}, {});
      ::signal(SIGXFSZ, SIG_IGN);
      rlimit limit{1 << 16, 1 << 16};  // simulates the end of the disk: writes beyond it fail
      ::setrlimit(RLIMIT_FSIZE, &limit);
      auto fault = [&](auto work) -> std::string {
        try {
          work();
        } catch (const Fault& error) {
          return error.what();
        }
        return "";
      };
      first = fault([&] { writer.write("model.safetensors", "w", 1 << 18, bytes_of(values)); });
      second = fault([&] { writer.write("model.safetensors", "w", 0, bytes_of(values).first(4)); });
      at_commit = fault([&] { writer.commit(nullptr); });
    }
    if (first.find("model.safetensors: cannot write: File too large") == std::string::npos)
      fmt::print(stderr, "said: {}\n", first);
    return !first.empty() && first == second && first == at_commit && names_in(temp.path()).size() == 1;
  }));
}

TEST(Checkpoint, DirectoryThatCannotBeMadeIsAFaultWithItsPath) {
  TempDir temp;
  write_file_atomically(temp / "file", "");
  try {
    CheckpointWriter writer(temp / "file" / "c", {}, {});
    FAIL() << "a checkpoint below a file";
  } catch (const Fault& fault) {
    EXPECT_CONTAINS(fault.what(), "Not a directory");
  }
}

// A child process saves one step after another until it is killed. At any moment the newest checkpoint must be complete.
TEST(Checkpoint, KilledWriterLeavesTheLastCheckpointValid) {
  TempDir temp;
  save(temp.path(), 1);
  std::minstd_rand random(1);
  int64_t last_step = 1;
  int unfinished = 0;
  for (int round = 0; round < 12; round++) {
    pid_t child = ::fork();
    if (child == 0) {
      for (int64_t step = last_step + 1;; step++) {
        save(temp.path(), step);
        prune(temp.path(), 2, step);
      }
    }
    auto pause = [](int64_t microseconds) {
      std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
    };
    if (round % 2 == 0)  // after at least one more save, however slow the disk
      for (int i = 0; i < 10000 && list_checkpoints(temp.path())[0].step == last_step; i++) pause(1000);
    pause(static_cast<int64_t>(random() % 30000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);

    std::vector<std::string> complaints;
    auto found = latest_valid(temp.path(), [&](const std::string& m) { complaints.push_back(m); });
    ASSERT_TRUE(found);
    EXPECT_TRUE(complaints.empty()) << complaints[0];
    EXPECT_GE(found->step, last_step) << "a finished checkpoint never goes away";
    EXPECT_EQ(read_state(found->dir).at("step"), found->step);
    EXPECT_EQ(read_all(found->dir, test::small_tensors()[0]), ramp(1000, static_cast<float>(found->step)));
    last_step = found->step;
    unfinished += static_cast<int>(remove_stale(temp.path()));
    for (const std::string& name : names_in(temp.path())) EXPECT_TRUE(step_of_name(name)) << name;
  }
  EXPECT_GT(last_step, 6) << "every other round saved at least once";
  EXPECT_GT(unfinished, 0) << "no kill fell into a save";
}

}  // namespace
}  // namespace megalith
