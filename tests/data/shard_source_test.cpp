#include "data/shard_source.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/files.h"
#include "temp_dir.h"

namespace megalith {
namespace {

void write_tokens(const std::filesystem::path& prefix) {
  ShardWriter writer(prefix, TokenWidth::uint16);
  writer.add(std::vector<TokenId>{5, 6, 7});
  writer.end_document();
  writer.add(std::vector<TokenId>{8, 65000});
  writer.finish();
}

TEST(ShardSource, GivesTheTokensOfAShardOnDisk) {
  TempDir folder;
  write_tokens(folder / "tokens");
  ShardSource source(folder / "tokens");
  EXPECT_EQ(source.tokens(), 5);
  std::vector<int64_t> out(4);
  source.copy(1, out);
  EXPECT_EQ(out, (std::vector<int64_t>{6, 7, 8, 65000}));
  EXPECT_NE(source.name().find("tokens"), std::string::npos);
}

// The next search for the cache must not find it.
TEST(CachedSource, LosesItsIndexWhenItIsDamaged) {
  TempDir folder;
  const std::filesystem::path prefix = folder / "cache";
  std::vector<int64_t> out(5);
  auto damage = [&](const char* extension, auto change) {
    write_tokens(prefix);
    CachedSource(prefix, "a.txt").copy(0, out);
    EXPECT_TRUE(is_shard(prefix));
    std::string bytes = read_file(shard_file(prefix, extension));
    change(bytes);
    folder.write(std::string("cache") + extension, bytes);
    try {
      CachedSource(prefix, "a.txt").copy(0, out);
    } catch (const DamagedCache& error) {
      EXPECT_FALSE(is_shard(prefix)) << extension;
      return std::string(error.what());
    }
    return std::string("none");
  };
  auto flip = [](std::string& bytes) { bytes.back() = static_cast<char>(bytes.back() ^ 4); };
  auto cut = [](std::string& bytes) { bytes.pop_back(); };
  for (const char* extension : {".bin", ".idx", ".sums"}) {
    EXPECT_NE(damage(extension, flip).find("a.txt"), std::string::npos) << extension;
    EXPECT_NE(damage(extension, cut).find(prefix.string()), std::string::npos) << extension;
  }
  write_tokens(prefix);
  EXPECT_EQ(CachedSource(prefix, "a.txt").name(), "a.txt");
}

}  // namespace
}  // namespace megalith
