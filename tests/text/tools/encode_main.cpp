// For comparisons with other tokenizers. Reads JSON strings from standard input, one per line. For each, writes the
// ids that Megalith gives, as a JSON list. With "decode", reads lists of ids and writes JSON strings. With "file",
// writes the tokenizer.json that a checkpoint contains, as a JSON string.
//   encode_main TOKENIZER [encode | encode_special | decode | file | train] ...
//   encode_main TOKENIZER tokenize PREFIX FILE...
//     writes shards on two threads; prints seconds, bytes and tokens
//   encode_main VOCAB train FILE...
//     writes the tokenizer.json of a byte-level BPE trained on the files
#include <chrono>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/json.h"
#include "text/bpe_trainer.h"
#include "text/tokenize.h"
#include "text/tokenizer.h"

int main(int argc, char** argv) try {
  using nlohmann::json;
  if (argc < 3) {
    std::fputs(
        "usage: encode_main TOKENIZER encode|encode_special|decode|file, or encode_main VOCAB train "
        "FILE...\n",
        stderr);
    return 2;
  }
  std::string mode = argv[2];
  std::ios::sync_with_stdio(false);
  if (mode == "train") {
    std::vector<std::filesystem::path> files(argv + 3, argv + argc);
    std::cout << megalith::train_bpe(files, std::stoll(argv[1]));
    return 0;
  }
  auto tokenizer = megalith::load_tokenizer(argv[1]);
  if (mode == "tokenize" && argc > 4) {
    std::vector<std::filesystem::path> files(argv + 4, argv + argc);
    auto begin = std::chrono::steady_clock::now();
    auto counts = megalith::tokenize_corpus(files, {}, *tokenizer, argv[3], {.threads = 2});
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::cout << megalith::print_json(json{took.count(), counts.text_bytes, counts.tokens}) << '\n';
    return 0;
  }
  for (std::string line; std::getline(std::cin, line);) {
    json in = megalith::parse_json(line);
    json out = mode == "file"     ? json(tokenizer->files().front().second)
               : mode == "decode" ? json(tokenizer->decode(in.get<std::vector<megalith::TokenId>>()))
                                  : json(tokenizer->encode(in.get<std::string>(), mode == "encode_special"));
    std::cout << megalith::print_any_json(out) << '\n';
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
