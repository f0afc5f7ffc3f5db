#include "data/shard_source.h"

namespace megalith {

CachedSource::CachedSource(const std::filesystem::path& prefix, std::string text)
    : prefix_(prefix), text_(std::move(text)) {
  try {
    shard_ = std::make_unique<const ShardSource>(prefix);
  } catch (const UserError& damage) {
    if (damage.parts.expected.empty()) throw;  // the system refused to open it; its bytes may be valid
    discard(damage);
  }
}

void CachedSource::copy(int64_t begin, std::span<int64_t> out) const {
  try {
    shard_->copy(begin, out);
  } catch (const DamagedShard& damage) {
    discard(damage);
  }
}

void CachedSource::discard(const UserError& damage) const {
  std::error_code ignored;
  std::filesystem::remove(shard_file(prefix_, ".idx"), ignored);
  throw DamagedCache(fmt::format("the tokens of {} are damaged on disk, and the text must be tokenized again: "
                                 "{}: expected {}, got {}", text_,
                                 damage.parts.where, damage.parts.expected, damage.parts.got));
}

}  // namespace megalith
