#include "text/tiktoken.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "text/base64.h"
#include "text/byte_alphabet.h"
#include "text/gpt2_split.h"
#include "text/lines.h"
#include "text/token_model.h"
#include "text/tokenizer_json.h"

namespace megalith {
namespace {

using nlohmann::json;

// Split patterns as published by the model families.
constexpr std::string_view kCl100kPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwenPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kO200kPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct Encoding {
  size_t ranks;
  std::vector<const char*> names;  // parts of a file name that mean this encoding, in lower case
  std::string_view pattern;
  std::vector<std::pair<const char*, TokenId>> specials;
};

const std::vector<Encoding>& encodings() {
  static const std::vector<Encoding> all = {
      {50256, {"gpt2", "r50k"}, kGpt2Pattern, {{"<|endoftext|>", 50256}}},
      {50280, {"p50k"}, kGpt2Pattern, {{"<|endoftext|>", 50256}}},
      {100256,
       {"cl100k"},
       kCl100kPattern,
       {{"<|endoftext|>", 100257},
        {"<|fim_prefix|>", 100258},
        {"<|fim_middle|>", 100259},
        {"<|fim_suffix|>", 100260},
        {"<|endofprompt|>", 100276}}},
      {199998, {"o200k"}, kO200kPattern, {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}},
      {128000,
       {"llama3", "llama-3"},
       kCl100kPattern,
       {{"<|begin_of_text|>", 128000},
        {"<|end_of_text|>", 128001},
        {"<|start_header_id|>", 128006},
        {"<|end_header_id|>", 128007},
        {"<|eot_id|>", 128009}}},
      {151643,
       {"qwen"},
       kQwenPattern,
       {{"<|endoftext|>", 151643}, {"<|im_start|>", 151644}, {"<|im_end|>", 151645}}}};
  return all;
}

// Returns the encoding for this number of ranks, or else for this file name.
Encoding choose_encoding(size_t ranks, TokenId next_id, const std::string& where) {
  for (const Encoding& known : encodings())
    if (known.ranks == ranks) return known;
  std::string name = std::filesystem::path(where).filename().string();
  for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  for (const Encoding& known : encodings())
    for (const char* said : known.names)
      if (name.find(said) != std::string::npos)
        return {ranks, {}, known.pattern, {{"<|endoftext|>", next_id}}};
  throw UserError({where, "split pattern", "a known number of ranks, or a file name that contains the name of an encoding",
                   fmt::format("{} ranks", ranks),
                   "add gpt2, cl100k, o200k, llama3 or qwen to the file name"});
}

using Ranks = std::unordered_map<std::string, TokenId, StringHash, std::equal_to<>>;

Ranks read_ranks(std::string_view content, const std::string& where) {
  Ranks ranks;
  std::vector<bool> taken;
  for_each_line(content, [&](std::string_view line, int64_t line_number) {
    if (line.empty()) return;
    auto bad = [&](const std::string& expected) {
      throw UserError({fmt::format("{}:{}", where, line_number), "", expected,
                       '"' + std::string(line.substr(0, 60)) + '"', "check whether this is a rank file of tiktoken"});
    };
    size_t space = line.find(' ');
    if (space == std::string_view::npos) bad("a token in base 64, a space and its rank");
    auto token = from_base64(line.substr(0, space));
    int64_t rank = -1;
    const char* last = line.data() + line.size();
    auto [stop, error] = std::from_chars(line.data() + space + 1, last, rank);
    if (!token || token->empty() || error != std::errc() || stop != last)
      bad("a token in base 64, a space and its rank");
    if (rank < 0 || rank >= kLargestVocab) bad(fmt::format("a rank from 0 to {}", kLargestVocab - 1));
    if (taken.size() <= static_cast<size_t>(rank)) taken.resize(static_cast<size_t>(rank) + 1);
    if (taken[static_cast<size_t>(rank)] || !ranks.emplace(*token, static_cast<TokenId>(rank)).second)
      bad("a token and a rank that occur once");
    taken[static_cast<size_t>(rank)] = true;
  });
  for (int b = 0; b < 256; b++)
    if (!ranks.contains(std::string(1, static_cast<char>(b))))
      throw UserError(
          {where, "ranks", "one for each of the 256 bytes", fmt::format("none for byte {}", b), ""});
  return ranks;
}

}  // namespace

bool looks_like_tiktoken(std::string_view content) {
  std::string_view line = content.substr(0, content.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  size_t space = line.find(' ');
  return space != std::string_view::npos && space > 0 && space + 1 < line.size() &&
         from_base64(line.substr(0, space)) &&
         std::all_of(line.begin() + static_cast<int64_t>(space) + 1, line.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

std::string tokenizer_from_tiktoken(std::string_view content, const std::string& where) {
  Ranks ranks = read_ranks(content, where);
  TokenId next_id = 0;
  for (const auto& [token, rank] : ranks) next_id = std::max(next_id, rank + 1);
  Encoding encoding = choose_encoding(ranks.size(), next_id, where);

  struct Merge {
    TokenId joined, left, right;
    bool operator<(const Merge& o) const {
      return std::tie(joined, left, right) < std::tie(o.joined, o.left, o.right);
    }
  };
  std::vector<Merge> merges;
  std::vector<std::string> names(static_cast<size_t>(next_id));
  json vocab = json::object(), merge_list = json::array(), added = json::array();
  for (const auto& [token, rank] : ranks) {
    names[static_cast<size_t>(rank)] = to_byte_alphabet(token);
    vocab[names[static_cast<size_t>(rank)]] = rank;
    for (size_t cut = 1; cut < token.size(); cut++) {
      auto left = ranks.find(std::string_view(token).substr(0, cut));
      auto right = left == ranks.end() ? left : ranks.find(std::string_view(token).substr(cut));
      if (right != ranks.end()) merges.push_back({rank, left->second, right->second});
    }
  }
  std::sort(merges.begin(), merges.end());
  for (const Merge& merge : merges)
    merge_list.push_back({names[static_cast<size_t>(merge.left)], names[static_cast<size_t>(merge.right)]});
  for (const auto& [name, id] : encoding.specials) added.push_back(added_token_json(id, name));
  json model = bpe_json(std::move(vocab), std::move(merge_list));
  model["ignore_merges"] = true;  // a word that is a token is that token
  model["rank_by_token"] = true;  // see read_bpe
  json file = tokenizer_file_json(std::move(model), added);
  if (encoding.pattern == kGpt2Pattern)
    file["pre_tokenizer"] = byte_level_json(false);
  else
    file["pre_tokenizer"] = {{"type", "Sequence"},
                             {"pretokenizers", json::array({json{{"type", "Split"},
                                                                 {"pattern", {{"Regex", encoding.pattern}}},
                                                                 {"behavior", "Isolated"},
                                                                 {"invert", false}},
                                                            byte_level_json(false, false)})}};
  file["decoder"] = byte_level_json(true);
  return print_json(file);
}

}  // namespace megalith
