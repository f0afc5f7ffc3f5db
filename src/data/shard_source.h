// A token shard on disk as a source.
#pragma once
#include <string>

#include "data/token_source.h"
#include "text/shards.h"

namespace megalith {

class ShardSource final : public TokenSource {
 public:
  explicit ShardSource(const std::filesystem::path& prefix) : shard_(prefix) {}
  int64_t tokens() const override { return shard_.tokens(); }
  void copy(int64_t begin, std::span<int64_t> out) const override { shard_.copy(begin, out); }
  std::string name() const override { return shard_.prefix().string(); }

 private:
  TokenShard shard_;
};

}  // namespace megalith
