#include "text/shards.h"

#include <cstring>
#include <thread>

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
    writer.add(std::span(ids).first(ids.size() / 2));  // a document may be added in parts
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

// Expected bytes are written by hand, from Megatron's documentation of the format.
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
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / ""), {}), 3);
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
  EXPECT_SAYS(message(index.substr(0, index.size() - 1), ids), "truncated");
  EXPECT_SAYS(message(index + "x", ids), "truncated or has another format");
  EXPECT_SAYS(message(with(18, uint64_t{1} << 63), ids), "size: ");
  EXPECT_SAYS(message(with(26, ~uint64_t{0}), ids), "size: ");
  EXPECT_SAYS(message(with(34, int32_t{-3}), ids), "length of sequence 0: expected 0 or more, got -3");
  EXPECT_SAYS(message(with(34 + 8 + 8, int64_t{4}), ids),
              "offset of sequence 1: expected 6 (the end of the previous sequence), got 4");
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
  std::filesystem::remove(folder / "t.sums");  // otherwise the checksums report most of the damage before the index is read
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

constexpr int64_t kBlockTokens = kSumsBlock / 2;  // uint16 tokens per block

// Documents that fill three blocks and a part of a fourth.
std::vector<Ids> long_documents() {
  std::vector<Ids> documents(5);
  TokenId next = 0;
  for (Ids& ids : documents) {
    ids.resize(static_cast<size_t>(kBlockTokens * 7 / 10));
    for (TokenId& id : ids) id = next++ % 5000;
  }
  return documents;
}

void flip(const std::filesystem::path& file, size_t byte, int bit) {
  std::string content = read_file(file);
  content.at(byte) = static_cast<char>(content.at(byte) ^ (1 << bit));
  std::ofstream(file, std::ios::binary) << content;
}

template <class Call>
std::string damage(const Call& call) {
  try {
    call();
  } catch (const DamagedShard& error) {
    return error.what();
  }
  return "none";
}

TEST(ShardSums, ADamagedBlockIsRefusedWhenItIsFirstRead) {
  Folder folder;
  write(folder / "t", long_documents(), TokenWidth::uint16);
  const int64_t tokens = TokenShard(folder / "t").tokens();
  EXPECT_TRUE(TokenShard(folder / "t").has_checksums());
  std::mt19937_64 random(4);
  for (int64_t bad : {int64_t{0}, kBlockTokens - 1, kBlockTokens, 2 * kBlockTokens + 77, tokens - 1}) {
    const int bit = static_cast<int>(random() % 8);
    flip(folder / "t.bin", static_cast<size_t>(2 * bad), bit);
    TokenShard shard(folder / "t");
    for (int64_t position = 0; position < tokens; position += kBlockTokens / 3) {
      const bool same_block = position / kBlockTokens == bad / kBlockTokens;
      const std::string said = damage([&] { shard.at(position); });
      if (same_block) EXPECT_SAYS(said, "t.bin: bytes ") << position;
      else EXPECT_EQ(said, "none") << position;
    }
    std::vector<int64_t> all(static_cast<size_t>(tokens));
    EXPECT_SAYS(damage([&] { shard.copy(0, all); }), "remove " + (folder / "t.sums").string());
    flip(folder / "t.bin", static_cast<size_t>(2 * bad), bit);
  }
  std::vector<int64_t> all(static_cast<size_t>(tokens));
  EXPECT_EQ(damage([&] { TokenShard(folder / "t").copy(0, all); }), "none");
}

TEST(ShardSums, ADamagedIndexIsRefused) {
  Folder folder;
  write(folder / "t", long_documents(), TokenWidth::uint16);
  const size_t second_document = 34 + 5 * 12 + 8;
  std::string index = read_file(folder / "t.idx");
  index[second_document] = 2;  // document begins with the third sequence; consistent with the rest of the index
  folder.write("t.idx", index);
  EXPECT_SAYS(damage([&] { TokenShard shard(folder / "t"); }),
              "t.idx: checksums: expected the bytes that t.sums was computed from");
}

TEST(ShardSums, ChecksumsThatAreDamagedOrOfAnotherShardAreRefused) {
  Folder folder;
  write(folder / "t", long_documents(), TokenWidth::uint16);
  write(folder / "other", {{1, 2, 3}}, TokenWidth::uint16);
  const std::string good = read_file(folder / "t.sums");
  EXPECT_EQ(good.size(), sizeof(SumsHeader) + 5 * 8);
  for (size_t byte = 0; byte < good.size(); byte += 3) {
    flip(folder / "t.sums", byte, 5);
    EXPECT_SAYS(damage([&] { TokenShard shard(folder / "t"); }), "t.sums: checksums: ") << byte;
    folder.write("t.sums", good);
  }
  for (const std::string& bad : {std::string(), good.substr(0, good.size() - 8), good + "12345678"}) {
    folder.write("t.sums", bad);
    EXPECT_SAYS(damage([&] { TokenShard shard(folder / "t"); }), "got a damaged file");
  }
  folder.write("t.sums", read_file(folder / "other.sums"));
  EXPECT_SAYS(damage([&] { TokenShard shard(folder / "t"); }), "got checksums of 6 and 62 bytes");
}

TEST(ShardSums, AShardWithoutThemIsRead) {
  Folder folder;
  write(folder / "t", {{1, 2, 3}}, TokenWidth::uint16);
  std::filesystem::remove(folder / "t.sums");
  EXPECT_FALSE(TokenShard(folder / "t").has_checksums());
  EXPECT_EQ(TokenShard(folder / "t").at(2), 3);
  write(folder / "t", {{7}}, TokenWidth::uint16);
  EXPECT_TRUE(TokenShard(folder / "t").has_checksums()) << "of the new shard";
  write(folder / "empty", {}, TokenWidth::uint16);
  EXPECT_EQ(TokenShard(folder / "empty").tokens(), 0);
}

TEST(ShardSums, ThreadsReadOneShard) {
  Folder folder;
  const auto documents = long_documents();
  write(folder / "t", documents, TokenWidth::int32);
  Ids expected;
  for (const Ids& ids : documents) expected.insert(expected.end(), ids.begin(), ids.end());
  TokenShard shard(folder / "t");
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (uint64_t seed = 0; seed < 4; seed++)
    threads.emplace_back([&, seed] {
      std::mt19937_64 random(seed);
      Ids out(3000);
      for (int i = 0; i < 200; i++) {
        const auto begin = static_cast<int64_t>(random() % (expected.size() - out.size()));
        shard.copy(begin, std::span(out));
        wrong += !std::equal(out.begin(), out.end(), expected.begin() + begin);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace megalith
