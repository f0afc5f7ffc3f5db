// A token shard on disk as a source.
#pragma once
#include <filesystem>
#include <string>
#include <utility>

#include "data/token_source.h"
#include "text/shards.h"

namespace megalith {

class ShardSource final : public TokenSource {
 public:
  // `name` is what messages call it: the text it was made from, where the shard itself is only a cache.
  explicit ShardSource(const std::filesystem::path& prefix, std::string name = "")
      : shard_(prefix), name_(name.empty() ? prefix.string() : std::move(name)) {}
  int64_t tokens() const override { return shard_.tokens(); }
  void copy(int64_t begin, std::span<int64_t> out) const override { shard_.copy(begin, out); }
  int64_t document_end(int64_t position) const override {
    return shard_.document_begin(shard_.document_of(position) + 1);
  }
  std::string name() const override { return name_; }

 private:
  TokenShard shard_;
  std::string name_;
};

}  // namespace megalith
