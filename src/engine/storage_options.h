// Options for the state on disk, and for the device that computes blocks.
#pragma once
#include <filesystem>
#include <vector>

#include "engine/stored_array.h"
#include "schedule/home.h"

namespace megalith {

class Device;

// Empty: everything stays in memory.
struct StorageOptions {
  std::vector<Placement> placement;            // by block
  std::filesystem::path spill;                 // folder
  std::vector<int64_t> offloaded_inputs = {};  // by block: bytes of a micro-batch's input that waits on disk
  int32_t micros = 0;                          // number of micro-batches whose inputs wait at the same time
  Staging staging = Staging::scarce;           // staging for arrays that stream
  Device* device = nullptr;                    // borrowed; null: blocks compute in host memory
};

}  // namespace megalith
