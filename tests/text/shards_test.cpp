#include "text/shards.h"

#include <cstring>

#include "text_testing.h"

namespace megalith {
namespace {

using Ids = std::vector<TokenId>;

std::vector<Ids> some_documents(int64_t vocab) {
  std::mt19937_64 random(2);
  std::vector<Ids> documents;
  for (size_t length : {3, 1, 0, 700, 12, 0}) {
    Ids ids(length);
    for (auto& id : ids) id = static_cast<TokenId>(random() % static_cast<uint64_t>(vocab));
    documents.push_back(ids);
  }
  return documents;
}

void write(const std::filesystem::path& prefix, const std::vector<Ids>& documents, TokenWidth width) {
  ShardWriter writer(prefix, width);
  for (const Ids& ids : documents) {
    writer.add(std::span(ids).first(ids.size() / 2));  // a document may come in parts
    writer.add(std::span(ids).subspan(ids.size() / 2));
    writer.end_document();
  }
  writer.finish();
}

TEST(Shards, ADocumentComesBackFromBothWidths) {
  for (int64_t vocab : {65499, 65500, 1 << 20}) {
    Folder folder;
    auto documents = some_documents(vocab);
    write(folder / "sub/my.tokens", documents, width_for_vocab(vocab));
    TokenShard shard(folder / "sub/my.tokens");
    EXPECT_EQ(shard.width(), vocab < 65500 ? TokenWidth::uint16 : TokenWidth::int32);
    EXPECT_EQ(shard.documents(), 6);
    EXPECT_EQ(shard.tokens(), 716);
    int64_t position = 0;
    for (int64_t d = 0; d < shard.documents(); d++) {
      EXPECT_EQ(shard.document_begin(d), position);
      for (TokenId id : documents[static_cast<size_t>(d)]) {
        ASSERT_EQ(shard.document_of(position), d);
        ASSERT_EQ(shard.at(position++), id);
      }
    }
    EXPECT_EQ(shard.document_begin(6), 716);
    std::vector<int64_t> middle(5);
    shard.copy(2, middle);
    EXPECT_EQ(middle[0], documents[0][2]);
    EXPECT_EQ(middle[1], documents[1][0]);
    EXPECT_EQ(middle[4], documents[3][2]);
    EXPECT_THROW(shard.copy(712, middle), Bug);
  }
}

// Byte for byte what Megatron's documentation of the format says, written out by hand.
TEST(Shards, TheFilesAreMegatrons) {
  Folder folder;
  write(folder / "t", {{1, 2, 513}, {7}}, TokenWidth::uint16);
  EXPECT_EQ(read_file(folder / "t.bin"), std::string("\1\0\2\0\1\2\7\0", 8));
  std::string index(
      "MMIDIDX\0\0"
      "\1\0\0\0\0\0\0\0"
      "\x8"
      "\2\0\0\0\0\0\0\0"
      "\3\0\0\0\0\0\0\0",
      34);
  index += std::string("\3\0\0\0\1\0\0\0", 8);                                   // lengths
  index += std::string("\0\0\0\0\0\0\0\0\6\0\0\0\0\0\0\0", 16);                  // offsets
  index += std::string("\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0", 24);  // documents
  EXPECT_EQ(read_file(folder / "t.idx"), index);
}

TEST(Shards, AnUnfinishedShardLeavesNothingAndKeepsTheOldOne) {
  Folder folder;
  write(folder / "t", {{1, 2, 3}}, TokenWidth::uint16);
  {
    ShardWriter writer(folder / "t", TokenWidth::uint16);
    writer.add(Ids{9, 9, 9, 9});
  }
  EXPECT_EQ(TokenShard(folder / "t").tokens(), 3);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / ""), {}), 2);
  EXPECT_TRUE(is_shard(folder / "t"));
  EXPECT_FALSE(is_shard(folder / "u"));
}

TEST(Shards, WhatDoesNotFitIsRefusedWithItsReason) {
  Folder folder;
  write(folder / "t", {{1, 2, 3}, {4, 5}}, TokenWidth::uint16);
  const std::string index = read_file(folder / "t.idx"), ids = read_file(folder / "t.bin");
  auto message = [&](const std::string& new_index, const std::string& new_ids) {
    folder.write("t.idx", new_index);
    folder.write("t.bin", new_ids);
    return user_error([&] { TokenShard shard(folder / "t"); });
  };
  auto with = [&](size_t at, auto value) {
    std::string changed = index;
    std::memcpy(changed.data() + at, &value, sizeof value);
    return changed;
  };
  EXPECT_SAYS(message("TNTIDX", ids), "t.idx: token shard: expected an index of Megatron's format");
  EXPECT_SAYS(message("", ids), "expected an index of Megatron's format");
  EXPECT_SAYS(message(with(9, uint64_t{2}), ids), "version: expected 1, got 2");
  EXPECT_SAYS(message(with(17, uint8_t{7}), ids), "type of the ids: expected 4 (int32) or 8 (uint16), got 7");
  EXPECT_SAYS(message(index.substr(0, index.size() - 1), ids), "cut short");
  EXPECT_SAYS(message(index + "x", ids), "cut short or of another kind");
  EXPECT_SAYS(message(with(18, uint64_t{1} << 63), ids), "size: ");
  EXPECT_SAYS(message(with(26, ~uint64_t{0}), ids), "size: ");
  EXPECT_SAYS(message(with(34, int32_t{-3}), ids), "length of sequence 0: expected 0 or more, got -3");
  EXPECT_SAYS(message(with(34 + 8 + 8, int64_t{4}), ids),
              "offset of sequence 1: expected 6, the end of the one before, got 4");
  EXPECT_SAYS(message(index, ids.substr(0, 8)), "expected a .bin of at least 10 bytes, got 8");
  EXPECT_SAYS(message(index, ids + "xx"), "expected a .bin of 10 bytes, got 12");
  size_t documents = 34 + 2 * 12;
  EXPECT_SAYS(message(with(documents, int64_t{1}), ids), "beginning of document 0: ");
  EXPECT_SAYS(message(with(documents + 8, int64_t{5}), ids), "beginning of document 1: ");
  EXPECT_SAYS(message(with(documents + 16, int64_t{1}), ids), "beginning of document 2: ");
  folder.write("t.idx", index);
  folder.write("t.bin", ids);
  EXPECT_SAYS(user_error([&] { TokenShard(folder / "none"); }), "none.idx: cannot read");
}

TEST(Shards, DamagedIndexesNeverCrash) {
  Folder folder;
  write(folder / "t", {{1, 2, 3}, {}, {4, 5}}, TokenWidth::int32);
  const std::string index = read_file(folder / "t.idx");
  std::mt19937_64 random(3);
  for (int i = 0; i < 2000; i++) {
    std::string bad = index;
    for (uint64_t n = 1 + random() % 3; n > 0; n--) bad[random() % bad.size()] = static_cast<char>(random());
    folder.write("t.idx", bad);
    try {
      TokenShard shard(folder / "t");
      for (int64_t d = 0; d <= shard.documents(); d++) ASSERT_LE(shard.document_begin(d), shard.tokens());
      for (int64_t p = 0; p < shard.tokens(); p++) ASSERT_LT(shard.document_of(p), shard.documents());
    } catch (const UserError&) {
    }
  }
}

}  // namespace
}  // namespace megalith
