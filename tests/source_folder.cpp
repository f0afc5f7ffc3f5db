#include "source_folder.h"

namespace megalith {

std::filesystem::path source_folder() { return MEGALITH_SOURCE_FOLDER; }

}  // namespace megalith
