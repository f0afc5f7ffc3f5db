// Token shards in Megatron's format: PREFIX.bin holds the ids of all documents one after the other,
// PREFIX.idx their lengths. Layout of the .idx (little endian; megatron/core/datasets/indexed_dataset.py):
// "MMIDIDX\0\0", uint64 version 1, uint8 type of the ids, uint64 sequences S, uint64 D = documents + 1,
// int32[S] lengths, int64[S] byte offsets, int64[D] first sequence of each document, closed by S; those of
// multimodal data also int8[S] modes, of which we read 0, text. PREFIX.sums holds checksums of both (shard_sums.h).
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

// PREFIX with an extension added (PREFIX may contain dots).
std::filesystem::path shard_file(const std::filesystem::path& prefix, const char* extension);
// A shard may be named by its prefix or by one of its files: the prefix of either.
std::filesystem::path shard_prefix(const std::filesystem::path& name);
// Whether both files of a shard are there.
bool is_shard(const std::filesystem::path& prefix);

// A shard as one long stream of tokens with document boundaries; memory-mapped, random access in O(1),
// thread-safe. Tokens are verified when they are first read, if the shard has checksums.
class TokenShard {
 public:
  // Checks the whole index against itself, the .bin and the checksums; anything that does not fit is a UserError
  // with the reason.
  explicit TokenShard(const std::filesystem::path& prefix);

  int64_t tokens() const { return tokens_; }
  int64_t documents() const { return documents_; }
  TokenWidth width() const { return width_; }
  bool has_checksums() const { return sums_ != nullptr; }
  const std::filesystem::path& prefix() const { return prefix_; }

  // Throw DamagedShard if a block that is read differs from its checksum.
  TokenId at(int64_t position) const;                      // 0 <= position < tokens()
  void copy(int64_t begin, std::span<int64_t> out) const;  // tokens [begin, begin + out.size())
  void copy(int64_t begin, std::span<TokenId> out) const;
  int64_t document_begin(int64_t document) const;  // position of its first token; of documents(): tokens()
  int64_t document_of(int64_t position) const;     // which document holds a position; O(log documents)

 private:
  template <class T>
  void copy_as(int64_t begin, std::span<T> out) const;
  void expect_random_access() const;
  void read_ahead(const std::byte* from, int64_t bytes) const;

  std::filesystem::path prefix_;
  MappedFile index_, ids_;
  std::unique_ptr<const ShardSums> sums_;  // null: the shard has none
  TokenWidth width_ = TokenWidth::uint16;
  int64_t sequences_ = 0, documents_ = 0, tokens_ = 0;
  size_t offsets_at_ = 0, document_starts_at_ = 0;  // byte positions in the .idx
};

// Writes a shard aside; the files appear under their names only when `finish` succeeds. Memory does not grow
// with the shard. One writer a prefix: another process that writes the same one is waited for.
class ShardWriter {
 public:
  // `job` names what is written, down to whatever changes a byte of it. Where an earlier writer of the same
  // job was kept, this one goes on from there; anything else that lies aside is written over. Without a name
  // nothing can be kept.
  ShardWriter(std::filesystem::path prefix, TokenWidth width, std::string job = "");
  ~ShardWriter();  // removes what was written, unless it is finished or kept
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;

  void add(std::span<const TokenId> ids);  // more tokens of the current document
  void end_document();                     // a document without tokens is kept as an empty one
  void finish();                           // index, sync, rename; ends an open document

  // Makes all that was added so far durable, together with the caller's `note` on how to go on.
  void keep(const nlohmann::json& note);
  // The note of the writer that this one goes on from; null for a shard that begins.
  const nlohmann::json& kept() const { return *kept_; }
  void discard();  // what was kept, too: the destructor leaves nothing

  int64_t tokens() const { return tokens_; }
  int64_t documents() const { return documents_; }

 private:
  struct GrowingFile {  // at its end
    std::filesystem::path path;
    int fd = -1;
    std::string buffer;
    int64_t size = 0;  // with the buffer
    std::function<void(std::span<const std::byte>)> before_write = {};
    void append(const void* bytes, size_t count);
    void flush();
    void sync();
  };
  std::filesystem::path journal() const;
  void open_aside();
  bool go_on();  // from what an earlier writer kept; false where there is nothing that fits
  void add_sum(uint64_t sum) { sums_.append(&sum, sizeof sum); }
  void sum_open_block();  // the checksums go on with what the last block has
  void finish_sums(const SumsHeader& header);
  void remove_aside();
  void end_sequence(bool ends_document);
  SumsHeader write_index(const std::filesystem::path& path);

  std::filesystem::path prefix_;
  std::string job_;
  TokenWidth width_;
  GrowingFile ids_;        // becomes the .bin
  GrowingFile sequences_;  // uint32 each: length, and the highest bit where a document ends
  GrowingFile sums_;       // becomes the .sums: room for the header, then a checksum of each whole block
  BlockSums open_block_;
  int64_t sequence_count_ = 0, documents_ = 0, tokens_ = 0;
  int64_t open_length_ = 0;  // tokens of the sequence being written
  bool open_document_ = false;
  bool leave_ = false;  // finished or kept
  std::unique_ptr<nlohmann::json> kept_;  // never null
};

}  // namespace megalith
