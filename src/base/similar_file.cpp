#include "base/similar_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/nearest.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostEntries = 10000;  // of a folder: a larger one would take too long to read

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder.empty() ? "." : folder, error), end;
       !error && it != end && names.size() < kMostEntries; it.increment(error))
    names.push_back(it->path().filename().string());
  std::ranges::sort(names);  // the same suggestion on every file system
  return names;
}

}  // namespace

fs::path similar_path(const fs::path& missing) {
  std::error_code ignored;
  if (missing.empty() || fs::exists(missing, ignored)) return missing;
  if (!missing.has_filename()) return similar_path(missing.parent_path());
  const fs::path folder = similar_path(missing.parent_path());
  if (folder.empty() && missing.has_parent_path()) return {};
  if (fs::path same = folder / missing.filename(); fs::exists(same, ignored)) return same;
  const std::vector<std::string> names = names_in(folder);
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  const std::string_view near = nearest(missing.filename().string(), candidates);
  return near.empty() ? fs::path() : folder / near;
}

std::string where_it_may_be(const fs::path& missing) {
  const fs::path similar = similar_path(missing);
  if (!similar.empty()) return fmt::format("did you mean {}?", similar.string());
  if (missing.is_absolute()) return "check the path";
  std::error_code error;
  return fmt::format("the current folder is {}", fs::current_path(error).string());
}

}  // namespace megalith
