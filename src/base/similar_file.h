// Finds the file that a user may have meant.
#pragma once
#include <filesystem>
#include <string>

namespace megalith {

// Returns the existing path that is spelled most like a missing one: "dta/txt" for "data/text". Each folder and the file
// may be misspelled. Empty: no such path.
std::filesystem::path similar_path(const std::filesystem::path& missing);

// Returns what to do about a missing file: "did you mean my.txt?", or "the current folder is /home/me" if no
// path is similar.
std::string where_it_may_be(const std::filesystem::path& missing);

}  // namespace megalith
