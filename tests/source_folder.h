// Where the sources of these tests are. Not from __FILE__: with ccache that is a path from the build folder, so that all clones
// share what one of them has compiled.
#pragma once
#include <filesystem>

namespace megalith {

std::filesystem::path source_folder();

}  // namespace megalith
