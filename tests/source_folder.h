// The folder with the sources of these tests. It does not come from __FILE__: with ccache, clones share compiled files, so
// __FILE__ is relative to the build folder.
#pragma once
#include <filesystem>

namespace megalith {

std::filesystem::path source_folder();

}  // namespace megalith
