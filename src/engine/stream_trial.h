// Measures how long the ops that move a block's state take on a disk, with the code of these ops.
#pragma once
#include <filesystem>

#include "memory/io_method.h"
#include "schedule/cost_model.h"

namespace megalith {

// Speeds of one thread while nothing else runs, with the update of AdamW.
struct StreamSpeeds {
  TransferSpeed load, offload_gradient;
  TransferSpeed load_updated, load_updated_scarce;  // with ample and with scarce staging: engine/stored_array.h
};

// Writes a file of about 100 MB; takes one or two seconds. Throws UserError (memory.spill) like SpillFile.
StreamSpeeds try_streams(const std::filesystem::path& folder, const IoMethod& way);

}  // namespace megalith
