// Creates files in folders that other users may write to. Another user cannot predict a name or redirect it with a
// symbolic link.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <string>

namespace megalith {

inline constexpr mode_t kSharedMode = 0666;   // the user's umask decides who may read the file
inline constexpr mode_t kPrivateMode = 0600;

// Returns `bytes` random bytes of the kernel as hex digits. Throws Fault if the kernel cannot give them.
std::string random_hex(size_t bytes);

// Creates a file and opens it for reading and writing. Fails if the name exists, even as a symbolic link. Returns the
// descriptor, or -1 with errno.
int create_file(const std::filesystem::path& path, mode_t mode = kSharedMode);

// Opens a file for reading and writing, or creates it. For locks and partial results. Refuses symbolic links and everything
// that is not a regular file. Returns the descriptor, or -1 with errno.
int open_or_create_file(const std::filesystem::path& path, mode_t mode = kSharedMode);

// Makes a folder that only this user can enter, or accepts an existing one. Throws Fault for a symbolic link, a folder of
// another user, or a folder that other users can enter.
void make_private_folder(const std::filesystem::path& path);
bool is_private_folder(const std::filesystem::path& path);

}  // namespace megalith
