#include "checkpoint/verify.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <span>

#include "base/error.h"
#include "base/files.h"
#include "checkpoint/file_handle.h"
#include "checkpoint/manifest.h"

namespace megalith {
namespace {

uint64_t hash_extent(const FileHandle& file, const Extent& extent, std::span<std::byte> buffer) {
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), &XXH3_freeState);
  XXH3_64bits_reset(state.get());
  for (int64_t done = 0; done < extent.length;) {
    auto part =
        buffer.first(static_cast<size_t>(std::min<int64_t>(extent.length - done, std::ssize(buffer))));
    file.read_at(extent.offset + done, part);
    XXH3_64bits_update(state.get(), part.data(), part.size());
    done += std::ssize(part);
  }
  return XXH3_64bits_digest(state.get());
}

// Returns the error text without the path, which the message already contains.
std::string reason(const std::exception& error, const std::filesystem::path& path) {
  std::string text = error.what(), lead = path.string() + ": ";
  return text.starts_with(lead) ? text.substr(lead.size()) : text;
}

}  // namespace

VerifyResult verify(const std::filesystem::path& dir, VerifyPart part) {
  VerifyResult result;
  auto problem = [&](const std::string& file, std::string what) {
    result.problems.push_back({file, std::move(what)});
  };

  std::filesystem::path manifest_path = dir / "manifest.json";
  std::error_code error;
  if (!std::filesystem::exists(manifest_path, error)) {
    problem("manifest.json",
            std::filesystem::is_directory(dir, error) ? "missing" : "missing (its folder does not exist)");
    return result;
  }
  Manifest manifest;
  try {
    manifest = parse_manifest(read_file(manifest_path), manifest_path.string());
  } catch (const std::runtime_error& e) {
    problem("manifest.json", reason(e, manifest_path));
    return result;
  }

  std::vector<std::byte> buffer(1 << 20);
  auto extent = manifest.extents.begin();  // sorted by file, like sizes
  for (const auto& [name, size] : manifest.sizes) {
    auto end = std::find_if(extent, manifest.extents.end(), [&](const Extent& e) { return e.file != name; });
    if (part == VerifyPart::model && name.starts_with("optimizer-")) {
      extent = end;
      continue;
    }
    std::filesystem::path path = dir / name;
    result.files++;
    try {
      if (!std::filesystem::exists(path, error)) {
        problem(name, "missing");
      } else if (FileHandle file = FileHandle::open_to_read(path); file.size() != size) {
        problem(name, fmt::format("{} bytes, should be {}", file.size(), size));
      } else {
        for (const Extent& e : std::span(extent, end)) {
          if (hash_extent(file, e, buffer) != e.xxh3)
            problem(name, fmt::format("bytes {}..{} differ from what was written", e.offset,
                                      e.offset + e.length - 1));
          result.extents++;
          result.bytes += e.length;
        }
      }
    } catch (const std::runtime_error&
                 e) {  // a disk error: this file is lost, the others are still worth checking
      problem(name, reason(e, path));
    }
    extent = end;
  }
  return result;
}

std::string show(const VerifyProblem& problem) {
  return problem.file + ": " + problem.what;
}

}  // namespace megalith
