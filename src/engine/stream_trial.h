// How long the ops that move a block's state take on a disk: tried with the code that moves it.
#pragma once
#include <filesystem>

#include "memory/io_method.h"
#include "schedule/cost_model.h"

namespace megalith {

// Alone on the machine, by one thread, with an update like AdamW's.
struct StreamSpeeds {
  TransferSpeed load, offload_gradient;
  TransferSpeed load_updated, load_updated_scarce;  // by how much staging there is: engine/block_store.h
};

// Writes a file of some 100 MB, a second or two. UserError (memory.spill) as SpillFile.
StreamSpeeds try_streams(const std::filesystem::path& folder, const IoMethod& way);

}  // namespace megalith
