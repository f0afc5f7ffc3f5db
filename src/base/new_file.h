// Creates files in folders that other users may write to. Nobody can predict a name or redirect it with a symbolic link.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <string>

namespace megalith {

inline constexpr mode_t kSharedMode = 0666;   // the user's umask decides who reads
inline constexpr mode_t kPrivateMode = 0600;

// `bytes` from the kernel's random number generator, as hex digits. Throws Fault if the kernel has none.
std::string random_hex(size_t bytes);

// Creates a file and opens it for reading and writing. Fails if the name exists, also as a symbolic link. Returns the
// descriptor, or -1 with errno.
int create_file(const std::filesystem::path& path, mode_t mode = kSharedMode);

// Opens a lock or a partial result for reading and writing, or creates it. Refuses a symbolic link and everything that is
// not a regular file. Returns the descriptor, or -1 with errno.
int open_or_create_file(const std::filesystem::path& path, mode_t mode = kSharedMode);

// Makes a folder that only this user can enter, or accepts one that is already so. Refuses a symbolic link, a folder of
// another user and one that others can enter. Throws Fault.
void make_private_folder(const std::filesystem::path& path);
bool is_private_folder(const std::filesystem::path& path);

}  // namespace megalith
