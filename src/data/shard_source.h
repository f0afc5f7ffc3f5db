// A token shard on disk as a source.
#pragma once
#include <filesystem>
#include <string>
#include <utility>

#include "base/error.h"
#include "data/token_source.h"
#include "text/shards.h"

namespace megalith {

class ShardSource final : public TokenSource {
 public:
  explicit ShardSource(const std::filesystem::path& prefix) : shard_(prefix) {}
  bool has_checksums() const { return shard_.has_checksums(); }
  int64_t tokens() const override { return shard_.tokens(); }
  void copy(int64_t begin, std::span<int64_t> out) const override { shard_.copy(begin, out); }
  int64_t document_end(int64_t position) const override {
    return shard_.document_begin(shard_.document_of(position) + 1);
  }
  int64_t documents() const override { return shard_.documents(); }
  int64_t document_begin(int64_t document) const override { return shard_.document_begin(document); }
  std::string name() const override { return shard_.prefix().string(); }

 private:
  TokenShard shard_;
};

// Thrown if a cache does not match its checksums. Its index is removed, so the next search for the cache makes it again.
struct DamagedCache : Fault {
  using Fault::Fault;
};

// A shard that this program made from text and can make again. Throws DamagedCache instead of the shard's UserError.
class CachedSource final : public TokenSource {
 public:
  CachedSource(const std::filesystem::path& prefix, std::string text);  // `text`: the file it was made from
  bool has_checksums() const { return shard_->has_checksums(); }
  int64_t tokens() const override { return shard_->tokens(); }
  void copy(int64_t begin, std::span<int64_t> out) const override;
  int64_t document_end(int64_t position) const override { return shard_->document_end(position); }
  int64_t documents() const override { return shard_->documents(); }
  int64_t document_begin(int64_t document) const override { return shard_->document_begin(document); }
  std::string name() const override { return text_; }

 private:
  [[noreturn]] void discard(const UserError& damage) const;

  std::filesystem::path prefix_;
  std::string text_;
  std::unique_ptr<const ShardSource> shard_;
};

}  // namespace megalith
