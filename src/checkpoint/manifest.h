// manifest.json describes every byte of a checkpoint: files with their sizes, and extents (file, offset, length, xxh3)
// that cover each file without gaps. The manifest contains its own hash.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/checksum.h"

namespace megalith {

struct Extent {
  std::string file;
  int64_t offset = 0;  // bytes
  int64_t length = 0;  // bytes
  uint64_t xxh3 = 0;   // XXH3, 64 bits, seed 0
};

struct Manifest {
  std::map<std::string, int64_t> sizes;  // file -> bytes
  std::vector<Extent> extents;

  // Sorts the extents by file and offset. Returns an error text about the first file that they do not cover exactly
  // once, or an empty text.
  std::string normalise();
};

std::string show_hash(uint64_t hash);  // 16 hexadecimal digits

std::string to_json(const Manifest& manifest);
// Throws UserError for anything that to_json would not have written: damage, another version, file names with a path.
Manifest parse_manifest(std::string_view text, const std::string& where);

// True if a name stays inside its directory: no slash, not "." or "..", not empty.
bool is_plain_name(std::string_view name);
// The same for a file that may be in a folder inside: "1_Pooling/config.json".
bool stays_inside(std::string_view name);

}  // namespace megalith
