#include "data/shard_source.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <vector>

namespace megalith {

TEST(ShardSource, GivesTheTokensOfAShardOnDisk) {
  std::string made = testing::TempDir() + "megalith_shard_source_XXXXXX";
  ASSERT_NE(mkdtemp(made.data()), nullptr);
  const std::filesystem::path folder = made;
  {
    ShardWriter writer(folder / "tokens", TokenWidth::uint16);
    writer.add(std::vector<TokenId>{5, 6, 7});
    writer.end_document();
    writer.add(std::vector<TokenId>{8, 65000});
    writer.finish();
    ShardSource source(folder / "tokens");
    EXPECT_EQ(source.tokens(), 5);
    std::vector<int64_t> out(4);
    source.copy(1, out);
    EXPECT_EQ(out, (std::vector<int64_t>{6, 7, 8, 65000}));
    EXPECT_NE(source.name().find("tokens"), std::string::npos);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace megalith
