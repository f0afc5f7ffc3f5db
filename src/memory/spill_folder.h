// The folder of the disk tier. Only one run at a time uses it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

#include "memory/spill_file.h"

namespace megalith {

inline constexpr std::string_view kSpillSuffix = ".megalith-spill";

// Checks, before anything takes time, whether such a folder can be created. Throws UserError (memory.spill) if a file is
// in its way. Creates nothing.
void check_spill_folder(const std::filesystem::path& folder);

class SpillFolder {
 public:
  // Creates the folder if necessary and locks it. Removes files with our suffix, which a dead run left. Chooses the I/O
  // method of its disk. Throws UserError (memory.spill) if another run uses the folder, permissions are missing, or it
  // is a file.
  explicit SpillFolder(std::filesystem::path folder, DiskWays allowed = {});
  // Removes the lock file, and the folder if this run created it and it is empty.
  ~SpillFolder();
  SpillFolder(const SpillFolder&) = delete;
  SpillFolder& operator=(const SpillFolder&) = delete;

  const std::filesystem::path& path() const { return folder_; }
  const IoMethod& way() const { return way_; }
  // Call it before creating files. Throws a UserError that says how much space is needed and how much is free.
  void require(int64_t bytes) const;
  // Creates a file with this name. It throws like SpillFile. The files do not need the folder afterwards.
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
