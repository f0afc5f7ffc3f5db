// What `megalith` prints without a command: what to do next.
#pragma once
#include <filesystem>
#include <string>

namespace megalith {

// `program`: as the user named it. Lists the runs in `folder`, newest first, with commands for the newest one.
std::string welcome(const std::string& program, const std::filesystem::path& folder);

}  // namespace megalith
