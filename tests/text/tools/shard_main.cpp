// For comparisons with other readers and writers of token shards.
//   shard_main read PREFIX                 writes {"type": "uint16", "documents": [[ids], ...]}
//   shard_main write PREFIX uint16|int32   reads [[ids], ...] from standard input
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "text/shards.h"

namespace {

using megalith::TokenId;
using megalith::TokenWidth;

void read(const char* prefix) {
  megalith::TokenShard shard(prefix);
  auto documents = nlohmann::json::array();
  for (int64_t d = 0; d < shard.documents(); d++) {
    std::vector<TokenId> ids(static_cast<size_t>(shard.document_begin(d + 1) - shard.document_begin(d)));
    shard.copy(shard.document_begin(d), std::span(ids));
    documents.push_back(ids);
  }
  nlohmann::json all{{"type", shard.width() == TokenWidth::uint16 ? "uint16" : "int32"},
                     {"documents", documents}};
  std::cout << megalith::print_json(all) << '\n';
}

void write(const char* prefix, const std::string& type) {
  megalith::ShardWriter writer(prefix, type == "uint16" ? TokenWidth::uint16 : TokenWidth::int32);
  for (const auto& document : nlohmann::json::parse(std::cin)) {
    writer.add(document.get<std::vector<TokenId>>());
    writer.end_document();
  }
  writer.finish();
}

}  // namespace

int main(int argc, char** argv) try {
  std::string mode = argc > 2 ? argv[1] : "";
  if (mode == "read" && argc == 3) {
    read(argv[2]);
  } else if (mode == "write" && argc == 4) {
    write(argv[2], argv[3]);
  } else {
    std::fputs("usage: shard_main read PREFIX | shard_main write PREFIX uint16|int32\n", stderr);
    return 2;
  }
} catch (const megalith::UserError& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
