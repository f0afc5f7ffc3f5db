// Paths that settings name, and errors about them.
#pragma once
#include <filesystem>
#include <string_view>

#include "base/error.h"

namespace megalith {

// Turns an error about `path` into one about the setting `key`, so that the message can say where the path was written.
// Errors about other places, such as a file in the folder, stay as they are.
UserError about_setting(const UserError& error, std::string_view key, const std::filesystem::path& path);

// Does `work`, which uses the path that a setting names. Its errors about the path name the setting.
template <class Work>
auto for_setting(std::string_view key, const std::filesystem::path& path, const Work& work) {
  try {
    return work();
  } catch (const UserError& error) {
    throw about_setting(error, key, path);
  }
}

// Throws UserError about `key` if the folder that it names cannot be created or written. Creates nothing.
void check_folder(std::string_view key, const std::filesystem::path& folder);

}  // namespace megalith
