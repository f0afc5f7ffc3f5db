#include "run/setting_path.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace megalith {

UserError about_setting(const UserError& error, std::string_view key, const std::filesystem::path& path) {
  UserError::Parts parts = error.parts;
  if (parts.where != path.string()) return error;
  parts.got = parts.got.empty() ? parts.where : fmt::format("{}: {}", parts.where, parts.got);
  parts.where = "";
  parts.key = key;
  return UserError(std::move(parts));
}

void check_folder(std::string_view key, const std::filesystem::path& folder) {
  const auto refuse = [&](const std::string& reason) {
    throw UserError({"", std::string(key), "a directory that can be written", folder.string(), reason});
  };
  std::error_code error;
  std::filesystem::path part = std::filesystem::absolute(folder);
  while (!std::filesystem::exists(part, error) && part.has_relative_path()) part = part.parent_path();
  if (!std::filesystem::is_directory(part, error)) refuse(part.string() + " is a file");
  if (::access(part.c_str(), W_OK | X_OK) != 0) refuse(part.string() + ": " + std::strerror(errno));
}

}  // namespace megalith
