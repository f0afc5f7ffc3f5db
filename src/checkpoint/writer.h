// Writes a checkpoint: aside, at offsets that follow from the shapes, in any order and from any thread;
// hashed as it goes, written behind the caller's back, and made visible by one rename.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
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

inline constexpr int64_t kShardLimit = int64_t{5} << 30;  // bytes a file of weights, as Hugging Face splits

enum class Numbering { when_split, always };

// Tensors in order into files of at most `shard_limit` bytes (a larger tensor gets a file of its own):
// STEM.safetensors when one is enough, else STEM-00001-of-0000N.safetensors. Numbering::always numbers even
// one (optimizer-00001-of-00001.safetensors). No tensors, no files.
std::vector<FileSpec> plan_files(std::vector<TensorSpec> tensors, int64_t shard_limit,
                                 const std::string& stem = "model",
                                 Numbering numbering = Numbering::when_split);

// Hugging Face's index of a split model: its name and content, for small_files. Empty for a single file.
std::vector<std::pair<std::string, std::string>> index_file(const std::vector<FileSpec>& model_files);

// For folders that a user names (import, export): UserError unless it is missing or empty, so that commit
// replaces nothing of theirs.
void check_new_folder(const std::filesystem::path& dir);

class CheckpointWriter {
 public:
  // Makes `<final_dir>.tmp-<random>`, reserves the space of all files and writes headers and small files.
  // Throws Fault (disk full, read-only, ...), here and everywhere below; the aside directory goes with the
  // writer.
  CheckpointWriter(std::filesystem::path final_dir, std::vector<FileSpec> files,
                   std::vector<std::pair<std::string, std::string>> small_files);
  // Writes its part of what another process began (with the same files, in this directory): what is said below of all
  // calls then holds for all processes together. Whoever began it commits.
  static std::unique_ptr<CheckpointWriter> join(const std::filesystem::path& aside, const std::vector<FileSpec>& files);
  ~CheckpointWriter();  // not committed: removes what was written
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Little-endian elements of the tensor's own type, from element_offset on. Every element exactly once over
  // all calls. Thread-safe. The bytes may change when it returns. The call that completes a file waits until
  // all reached the disk; a Fault of the disk shows at the latest then, and spoils the writer: later calls throw it again.
  void write(const std::string& file, const std::string& tensor, int64_t element_offset,
             std::span<const std::byte> bytes);

  // Of a writer that joined: makes what it wrote durable, and says what that was. For the one that began it.
  std::string finish_part();
  void add_part(std::string_view written);
  const std::filesystem::path& aside() const { return aside_; }

  // state.json (left out when `state` is null), manifest.json, sync, rename; a directory of that name is
  // replaced. After it returns the checkpoint survives a crash. Asserts that every element was written.
  void commit(const nlohmann::json& state);

  int64_t bytes_written() const;  // so far, headers included; thread-safe

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
  // Where the file's tensors lie follows from their shapes; its header.
  static std::string lay_out(OpenFile& file, const FileSpec& spec);
  void write_small(const std::string& name, std::string_view content);
  void write_extents(const std::string& name, OpenFile& file, int64_t offset,
                     std::span<const std::byte> bytes);
  void sync(OpenFile& file);
  void publish();
  void abandon();
  template <class Work>
  void guarded(Work work);  // rethrows the first Fault for ever

  std::filesystem::path final_dir_, aside_;
  bool made_ = false;                  // the aside directory is ours to remove
  std::optional<DirectoryLock> lock_;  // on the aside directory: see remove_stale in store.h
  std::map<std::string, OpenFile> files_;
  WriteBehind behind_;
  mutable std::mutex mutex_;  // guards what changes below and OpenFile::written
  Manifest manifest_;
  std::string spoiled_;  // what the first Fault said
  bool committed_ = false;
};

}  // namespace megalith
