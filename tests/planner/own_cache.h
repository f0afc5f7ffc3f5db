// For tests that measure: each test has its own cache of measurements, in a folder that is removed after the test.
#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

namespace megalith {

struct OwnCache : testing::Test {
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/planner-XXXXXX";
    folder = mkdtemp(pattern.data());
    setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string folder;
};

}  // namespace megalith
