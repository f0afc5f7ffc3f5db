#include "checkpoint/writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/new_file.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

constexpr size_t largest_extent = 8 << 20;     // bytes; verify names a damaged place with this precision
constexpr size_t least_extent = 4 << 10;       // bytes; a manifest has no shorter extents, except for whole files and gaps

[[noreturn]] void fail(const fs::path& path, const char* verb, int error) {
  throw Fault(fmt::format("{}: cannot {}: {}", path.string(), verb, std::strerror(error)));
}

void rename_or_fail(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail(to, "rename a file to this name", errno);
}

}  // namespace

void check_new_folder(const fs::path& dir) {
  std::error_code error;
  if (!fs::exists(dir, error)) return;
  if (fs::is_directory(dir, error) && fs::is_empty(dir, error)) return;
  throw UserError({dir.string(), "", "a folder that does not exist yet, or an empty one",
                   fs::is_directory(dir, error) ? "one with files in it" : "a file",
                   "use another folder, or remove this one"});
}

CheckpointWriter::CheckpointWriter(fs::path final_dir, std::vector<FileSpec> files,
                                   std::vector<std::pair<std::string, std::string>> small_files)
    : final_dir_(std::move(final_dir)) {
  if (!final_dir_.has_filename()) final_dir_ = final_dir_.parent_path();  // "dir/" means dir
  aside_ = final_dir_;
  aside_ += fmt::format(".tmp-{}", random_hex(8));
  try {
    begin(files, small_files);
  } catch (...) {
    abandon();
    throw;
  }
}

std::unique_ptr<CheckpointWriter> CheckpointWriter::join(const fs::path& aside, const std::vector<FileSpec>& files) {
  std::unique_ptr<CheckpointWriter> writer(new CheckpointWriter);
  writer->aside_ = aside;
  for (const FileSpec& spec : files) {
    OpenFile& file = writer->files_[spec.file];
    file.handle = FileHandle::open_to_write(aside / spec.file);
    lay_out(file, spec);
  }
  return writer;
}

CheckpointWriter::~CheckpointWriter() {
  if (!committed_) abandon();
}

void CheckpointWriter::abandon() {
  behind_.wait();
  files_.clear();
  std::error_code ignored;
  if (made_) fs::remove_all(aside_, ignored);
  lock_.reset();
}

void CheckpointWriter::begin(const std::vector<FileSpec>& files,
                             const std::vector<std::pair<std::string, std::string>>& small_files) {
  std::error_code error;
  const fs::path parent = final_dir_.parent_path();
  if (!parent.empty() && fs::create_directories(parent, error)) sync_directory(parent.parent_path());
  if (::mkdir(aside_.c_str(), 0777) != 0) fail(aside_, "create this folder", errno);
  made_ = true;
  lock_.emplace(aside_);
  for (const FileSpec& spec : files) open(spec);
  for (const auto& [name, content] : small_files) write_small(name, content);
}

std::string CheckpointWriter::lay_out(OpenFile& file, const FileSpec& spec) {
  std::string header = build_safetensors_header(spec.tensors);
  file.size = std::ssize(header);
  for (const TensorSpec& tensor : spec.tensors) {
    file.tensors[tensor.name] = {tensor, file.size};
    file.size += tensor.bytes();
  }
  return header;
}

void CheckpointWriter::open(const FileSpec& spec) {
  MEGALITH_ASSERT(is_plain_name(spec.file) && !files_.contains(spec.file), "{}", spec.file);
  OpenFile& file = files_[spec.file];
  file.handle = FileHandle::create(aside_ / spec.file);
  const std::string header = lay_out(file, spec);
  manifest_.sizes[spec.file] = file.size;
  file.handle.reserve(file.size);
  write_extents(spec.file, file, 0, as_bytes(header));
}

void CheckpointWriter::make_folder(const fs::path& name) {
  std::error_code error;
  fs::create_directories(aside_ / name, error);
  if (error) fail(aside_ / name, "create this folder", error.value());
  inner_folders_.insert(aside_ / name);
}

void CheckpointWriter::write_small(const std::string& name, std::string_view content) {
  MEGALITH_ASSERT(stays_inside(name) && !manifest_.sizes.contains(name), "{}", name);
  if (const fs::path folder = fs::path(name).parent_path(); !folder.empty()) make_folder(folder);
  OpenFile file;
  file.handle = FileHandle::create(aside_ / name);
  file.size = std::ssize(content);
  manifest_.sizes[name] = file.size;
  write_extents(name, file, 0, as_bytes(content));
}

void CheckpointWriter::write_extents(const std::string& name, OpenFile& file, int64_t offset,
                                     std::span<const std::byte> bytes) {
  bool complete = bytes.empty() && file.size == 0;
  while (!bytes.empty()) {
    std::span<const std::byte> part = bytes.first(std::min(bytes.size(), largest_extent));
    // Ranges too short for an extent of their own (columns of a matrix) are hashed when all have been written.
    const bool counts = part.size() >= least_extent || part.size() == static_cast<size_t>(file.size);
    behind_.write(file.handle, offset, part);
    uint64_t hash = counts ? xxh3(part) : 0;  // hashed while the disk works; the bytes are still in the cache
    {
      std::lock_guard lock(mutex_);
      if (counts) manifest_.extents.push_back({name, offset, std::ssize(part), hash});
      file.written += std::ssize(part);
      complete = file.written == file.size;
    }
    offset += std::ssize(part);
    bytes = bytes.subspan(part.size());
  }
  if (complete) sync(file);
}

void CheckpointWriter::sync(OpenFile& file) {
  behind_.wait();
  behind_.check();
  file.handle.sync();
}

template <class Work>
void CheckpointWriter::guarded(Work work) {
  {
    std::lock_guard lock(mutex_);
    if (!spoiled_.empty()) throw Fault(spoiled_);
  }
  try {
    work();
  } catch (const Fault& fault) {
    std::lock_guard lock(mutex_);
    if (spoiled_.empty()) spoiled_ = fault.what();
    throw;
  }
}

void CheckpointWriter::write(const std::string& file_name, const std::string& tensor_name,
                             int64_t element_offset, std::span<const std::byte> bytes) {
  auto found = files_.find(file_name);
  MEGALITH_ASSERT(found != files_.end() && !committed_, "{}", file_name);
  auto tensor = found->second.tensors.find(tensor_name);
  MEGALITH_ASSERT(tensor != found->second.tensors.end(), "{} in {}", tensor_name, file_name);
  const auto& [spec, offset] = tensor->second;
  int64_t size = size_of(spec.dtype), count = std::ssize(bytes) / size;
  MEGALITH_ASSERT(
      count * size == std::ssize(bytes) && element_offset >= 0 && element_offset <= spec.elements() - count,
      "{}: {} bytes from element {} of {}", tensor_name, bytes.size(), element_offset, spec.elements());
  guarded([&] { write_extents(file_name, found->second, offset + element_offset * size, bytes); });
}

std::string CheckpointWriter::finish_part() {
  guarded([&] {
    for (auto& [name, file] : files_) sync(file);
  });
  std::lock_guard lock(mutex_);
  nlohmann::json part{{"written", nlohmann::json::object()}, {"extents", nlohmann::json::array()}};
  for (const auto& [name, file] : files_) part["written"][name] = file.written;
  for (const Extent& extent : manifest_.extents)
    part["extents"].push_back({extent.file, extent.offset, extent.length, extent.xxh3});
  return print_json(part);
}

void CheckpointWriter::add_part(std::string_view written) {
  const nlohmann::json part = parse_json(written);
  std::lock_guard lock(mutex_);
  for (const auto& [name, bytes] : part.at("written").items()) files_.at(name).written += bytes.get<int64_t>();
  for (const nlohmann::json& extent : part.at("extents"))
    manifest_.extents.push_back(
        {extent[0].get<std::string>(), extent[1].get<int64_t>(), extent[2].get<int64_t>(), extent[3].get<uint64_t>()});
}

// Reads the bytes between the extents back and hashes them.
void CheckpointWriter::hash_the_rest() {
  std::sort(manifest_.extents.begin(), manifest_.extents.end(), [](const Extent& a, const Extent& b) {
    return std::tie(a.file, a.offset) < std::tie(b.file, b.offset);
  });
  std::vector<Extent> rest;
  std::vector<std::byte> bytes;
  for (const auto& [name, file] : files_) {
    const auto read_back = [&, &handle = file.handle, &file_name = name](int64_t from, int64_t to) {
      for (; from < to; from += std::ssize(bytes)) {
        bytes.resize(std::min(static_cast<size_t>(to - from), largest_extent));
        handle.read_at(from, bytes);
        rest.push_back({file_name, from, std::ssize(bytes), xxh3(bytes)});
      }
    };
    int64_t end = 0;
    for (const Extent& extent : manifest_.extents) {
      if (extent.file != name) continue;
      read_back(end, extent.offset);
      end = extent.offset + extent.length;
    }
    read_back(end, file.size);
  }
  manifest_.extents.insert(manifest_.extents.end(), rest.begin(), rest.end());
}

void CheckpointWriter::commit(const nlohmann::json& state) {
  MEGALITH_ASSERT(!committed_);
  guarded([&] {
    behind_.wait();
    behind_.check();
    for (const auto& [name, file] : files_)
      MEGALITH_ASSERT(file.written == file.size, "{}: {} of {} bytes were written", name, file.written, file.size);
    hash_the_rest();
    std::string problem = manifest_.normalise();
    MEGALITH_ASSERT(problem.empty(), "{}", problem);
    if (!state.is_null())
      write_small("state.json", print_any_json(state, 2) + "\n");
    manifest_.normalise();
    for (auto& [name, file] : files_)
      sync(file);  // needed only for ranges that were written twice
    std::string text = to_json(manifest_);
    FileHandle manifest = FileHandle::create(aside_ / "manifest.json");
    manifest.write_at(0, as_bytes(text));
    manifest.sync();
    for (const fs::path& folder : inner_folders_) sync_directory(folder);
    sync_directory(aside_);
    publish();
  });
  committed_ = true;
  files_.clear();
  lock_.reset();
}

void CheckpointWriter::publish() {
  const fs::path parent = final_dir_.parent_path();
  if (::rename(aside_.c_str(), final_dir_.c_str()) == 0) return sync_directory(parent);
  if (errno != ENOTEMPTY && errno != EEXIST) fail(final_dir_, "rename the checkpoint to this name", errno);
  // Most likely a damaged checkpoint of the same step: exchange both directories atomically, then remove the old one.
  fs::path old = aside_;
  if (::renameat2(AT_FDCWD, aside_.c_str(), AT_FDCWD, final_dir_.c_str(), RENAME_EXCHANGE) != 0) {
    if (errno != EINVAL && errno != ENOSYS) fail(final_dir_, "replace this folder", errno);
    old +=
        "-old";  // no exchange on this file system: for a moment both names are missing, but earlier checkpoints exist
    rename_or_fail(final_dir_, old);
    rename_or_fail(aside_, final_dir_);
  }
  sync_directory(parent);
  std::error_code ignored;
  fs::remove_all(old, ignored);
}

int64_t CheckpointWriter::bytes_written() const {
  std::lock_guard lock(mutex_);
  int64_t sum = 0;
  for (const Extent& extent : manifest_.extents) sum += extent.length;
  return sum;
}

}  // namespace megalith
