// The folder of the disk tier, this run's alone while it runs.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

#include "memory/spill_file.h"

namespace megalith {

inline constexpr std::string_view kSpillSuffix = ".megalith-spill";

// Whether there can be such a folder, told before anything takes time: UserError (memory.spill) where a file is in its way.
// Leaves nothing behind.
void check_spill_folder(const std::filesystem::path& folder);

class SpillFolder {
 public:
  // Makes the folder if need be and locks it; what a dead run left there (files with our suffix, no others)
  // is removed. Finds out how its disk is driven. UserError (memory.spill): another run uses it, no
  // permission, a file.
  explicit SpillFolder(std::filesystem::path folder, DiskWays allowed = {});
  // The lock's file goes, and the folder if this run made it and nobody put anything in.
  ~SpillFolder();
  SpillFolder(const SpillFolder&) = delete;
  SpillFolder& operator=(const SpillFolder&) = delete;

  const std::filesystem::path& path() const { return folder_; }
  const IoMethod& way() const { return way_; }
  // To be asked before anything is made: UserError that says how much is needed and how much is free.
  void require(int64_t bytes) const;
  // A file of this name's own; see SpillFile for what it throws. The files do not need the folder any more.
  std::unique_ptr<SpillFile> make(std::string_view name, int64_t bytes, int64_t unit = kSpillChunk) const;

 private:
  void lock();
  void remove_leftovers() const;
  std::filesystem::path folder_;
  bool made_ = false;
  int lock_ = -1;
  IoMethod way_;
};

}  // namespace megalith
