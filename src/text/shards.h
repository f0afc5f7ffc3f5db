// Token shards in Megatron's format: PREFIX.bin contains the ids of all documents, concatenated; PREFIX.idx their
// lengths. Layout of the .idx (little endian; megatron/core/datasets/indexed_dataset.py): "MMIDIDX\0\0", uint64 version
// 1, uint8 type of the ids, uint64 sequences S, uint64 D = documents + 1, int32[S] lengths, int64[S] byte offsets,
// int64[D] first sequence of each document, then S. Multimodal data also has int8[S] modes; we accept only mode 0,
// text. PREFIX.sums contains checksums of both files (shard_sums.h).
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "text/shard_sums.h"
#include "text/tokenizer.h"

namespace megalith {

inline constexpr std::string_view kShardMagic("MMIDIDX\0\0", 9);
inline constexpr size_t kShardHeaderBytes = 34;

enum class TokenWidth : uint8_t { int32 = 4, uint16 = 8 };  // Megatron's type codes
constexpr TokenWidth width_for_vocab(int64_t vocab) {
  return vocab < 65500 ? TokenWidth::uint16 : TokenWidth::int32;
}
constexpr int64_t bytes_of(TokenWidth width) {
  return width == TokenWidth::uint16 ? 2 : 4;
}

// Returns PREFIX with the extension appended. PREFIX may contain dots.
std::filesystem::path shard_file(const std::filesystem::path& prefix, const char* extension);
// Returns the prefix of a shard. `name` is the prefix or one of the shard's files.
std::filesystem::path shard_prefix(const std::filesystem::path& name);
// True if the .bin and the .idx of a shard exist.
bool is_shard(const std::filesystem::path& prefix);

// Throws UserError about `name`, the prefix or one of its files, unless the shard exists.
void expect_shard(const std::filesystem::path& name);

// A shard as one long stream of tokens with document boundaries. Memory-mapped; random access in O(1); thread-safe. If
// the shard has checksums, tokens are verified when they are first read.
class TokenShard {
 public:
  // Checks that the index is consistent, and that it fits the .bin and the checksums. Otherwise throws UserError with
  // the reason.
  explicit TokenShard(const std::filesystem::path& prefix);

  int64_t tokens() const { return tokens_; }
  int64_t documents() const { return documents_; }
  TokenWidth width() const { return width_; }
  bool has_checksums() const { return sums_ != nullptr; }
  const std::filesystem::path& prefix() const { return prefix_; }

  // These throw DamagedShard if a block that they read differs from its checksum.
  TokenId at(int64_t position) const;                      // 0 <= position < tokens()
  void copy(int64_t begin, std::span<int64_t> out) const;  // tokens [begin, begin + out.size())
  void copy(int64_t begin, std::span<TokenId> out) const;
  int64_t document_begin(int64_t document) const;  // position of its first token; tokens() if document == documents()
  int64_t document_of(int64_t position) const;     // document that contains a position; O(log documents)

 private:
  template <class T>
  void copy_as(int64_t begin, std::span<T> out) const;
  void expect_random_access() const;
  void read_ahead(const std::byte* from, int64_t bytes) const;

  std::filesystem::path prefix_;
  MappedFile index_, ids_;
  std::unique_ptr<const ShardSums> sums_;  // null if the shard has no checksums
  TokenWidth width_ = TokenWidth::uint16;
  int64_t sequences_ = 0, documents_ = 0, tokens_ = 0;
  size_t offsets_at_ = 0, document_starts_at_ = 0;  // byte positions in the .idx
};

// Writes a shard under temporary names. The files get their final names only when `finish` succeeds. Memory does not
// grow with the shard. One writer per prefix: the constructor waits for another process that writes the same prefix.
class ShardWriter {
 public:
  // `job` identifies the content: anything that changes a byte of the shard must change `job`. If an earlier writer of
  // the same job called keep(), this writer resumes from there. Other temporary files of the prefix are overwritten. If
  // `job` is empty, keep() must not be called.
  ShardWriter(std::filesystem::path prefix, TokenWidth width, std::string job = "");
  ~ShardWriter();  // removes the temporary files, unless they are finished or kept
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;

  void add(std::span<const TokenId> ids);  // adds tokens to the current document
  void end_document();                     // a document without tokens becomes an empty document
  void finish();                           // ends an open document, writes the index, syncs, renames

  // Makes everything that was added so far durable, together with the caller's `note`, which says how to resume.
  void keep(const nlohmann::json& note);
  // The note of the writer that this one resumes; null for a new shard.
  const nlohmann::json& kept() const { return *kept_; }
  void discard();  // the destructor will remove all temporary files, also kept ones

  int64_t tokens() const { return tokens_; }
  int64_t documents() const { return documents_; }

 private:
  struct GrowingFile {  // a file that we append to
    std::filesystem::path path;
    int fd = -1;
    std::string buffer;
    int64_t size = 0;  // bytes, including the buffer
    std::function<void(std::span<const std::byte>)> before_write = {};
    void append(const void* bytes, size_t count);
    void flush();
    void sync();
  };
  std::filesystem::path journal() const;
  bool resume();  // resumes from what an earlier writer kept; returns false if nothing fits this job
  void add_sum(uint64_t sum) { sums_.append(&sum, sizeof sum); }
  void sum_open_block();  // continues the checksum of the last block if it is not full
  void finish_sums(const SumsHeader& header);
  void remove_aside();
  void end_sequence(bool ends_document);
  SumsHeader write_index(const std::filesystem::path& path);

  std::filesystem::path prefix_;
  std::string job_;
  TokenWidth width_;
  GrowingFile ids_;        // becomes the .bin
  GrowingFile sequences_;  // one uint32 per sequence: length; the highest bit is set if a document ends
  GrowingFile sums_;       // becomes the .sums: space for the header, then a checksum of each full block
  BlockSums open_block_;
  int64_t sequence_count_ = 0, documents_ = 0, tokens_ = 0;
  int64_t open_length_ = 0;  // tokens of the sequence being written
  bool open_document_ = false;
  bool leave_ = false;  // true if finished or kept: the destructor leaves the files
  std::unique_ptr<nlohmann::json> kept_;  // never null
};

}  // namespace megalith
