// Writes a checkpoint into a temporary directory, in any order and from any thread, at offsets that follow from the
// shapes. It hashes the bytes, writes them in the background, and makes the checkpoint visible by one rename.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint/directory_lock.h"
#include "checkpoint/file_handle.h"
#include "checkpoint/manifest.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_spec.h"
#include "checkpoint/write_behind.h"

namespace megalith {

struct FileSpec {
  std::string file;                 // name inside the checkpoint
  std::vector<TensorSpec> tensors;  // in the order of their bytes
};

inline constexpr int64_t kShardLimit = int64_t{5} << 30;  // bytes of a file of weights at most, as in Hugging Face

enum class Numbering { when_split, always };

// Assigns tensors in order to files of at most `shard_limit` bytes. A larger tensor gets a file of its own. The name is
// STEM.safetensors if one file is enough, otherwise STEM-00001-of-0000N.safetensors. Numbering::always also numbers a
// single file (optimizer-00001-of-00001.safetensors). Without tensors there are no files.
std::vector<FileSpec> plan_files(std::vector<TensorSpec> tensors, int64_t shard_limit,
                                 const std::string& stem = "model",
                                 Numbering numbering = Numbering::when_split);

// Returns the name and content of Hugging Face's index of a split model, for small_files. Empty for a single file.
std::vector<std::pair<std::string, std::string>> index_file(const std::vector<FileSpec>& model_files);

// For folders that a user names (import, export). Throws UserError unless the folder is missing or empty, so that commit
// replaces none of the user's files.
void check_new_folder(const std::filesystem::path& dir);

class CheckpointWriter {
 public:
  // Creates `<final_dir>.tmp-<random>`, reserves the space of all files, and writes headers and small files. This and
  // all functions below throw Fault (disk full, read-only, ...). The destructor removes the temporary directory.
  CheckpointWriter(std::filesystem::path final_dir, std::vector<FileSpec> files,
                   std::vector<std::pair<std::string, std::string>> small_files);
  // Creates a writer for a part of a checkpoint that another process began. It has the same files and the same
  // directory. The rules for all calls below then hold for all processes together. The process that began the checkpoint
  // commits it.
  static std::unique_ptr<CheckpointWriter> join(const std::filesystem::path& aside, const std::vector<FileSpec>& files);
  ~CheckpointWriter();  // if not committed, removes what was written
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Writes little-endian elements of the tensor's own type, from element_offset on. All calls together write every
  // element exactly once. Thread-safe. The bytes may change when it returns. The call that completes a file waits until
  // all its bytes are on disk. A Fault of the disk is thrown there at the latest. It makes the writer unusable: later
  // calls throw it again.
  void write(const std::string& file, const std::string& tensor, int64_t element_offset,
             std::span<const std::byte> bytes);

  // For a writer that joined: finish_part makes its bytes durable and returns a description of them. The process that
  // began the checkpoint passes it to add_part.
  std::string finish_part();
  void add_part(std::string_view written);
  const std::filesystem::path& aside() const { return aside_; }

  // Writes state.json (unless `state` is null) and manifest.json, syncs, and renames. Replaces a directory of that name.
  // After it returns, the checkpoint survives a crash. Asserts that every element was written.
  void commit(const nlohmann::json& state);

  int64_t bytes_written() const;  // so far, including headers; ranges below 4 KiB only after commit; thread-safe

 private:
  struct OpenFile {
    FileHandle handle;
    int64_t size = 0;
    int64_t written = 0;  // bytes; guarded by mutex_
    std::map<std::string, TensorEntry> tensors;
  };
  CheckpointWriter() = default;
  void hash_the_rest();
  void begin(const std::vector<FileSpec>& files,
             const std::vector<std::pair<std::string, std::string>>& small_files);
  void open(const FileSpec& spec);
  // Computes the offsets of the file's tensors from their shapes. Returns the file's header.
  static std::string lay_out(OpenFile& file, const FileSpec& spec);
  void make_folder(const std::filesystem::path& name);  // inside the new folder
  void write_small(const std::string& name, std::string_view content);
  void write_extents(const std::string& name, OpenFile& file, int64_t offset,
                     std::span<const std::byte> bytes);
  void sync(OpenFile& file);
  void publish();
  void abandon();
  template <class Work>
  void guarded(Work work);  // after a Fault, every call throws the first Fault again

  std::filesystem::path final_dir_, aside_;
  std::set<std::filesystem::path> inner_folders_;
  bool made_ = false;                  // this writer created the temporary directory and removes it
  std::optional<DirectoryLock> lock_;  // on the temporary directory: see remove_stale in store.h
  std::map<std::string, OpenFile> files_;
  WriteBehind behind_;
  mutable std::mutex mutex_;  // guards the mutable members below and OpenFile::written
  Manifest manifest_;
  std::string spoiled_;  // message of the first Fault
  bool committed_ = false;
};

}  // namespace megalith
