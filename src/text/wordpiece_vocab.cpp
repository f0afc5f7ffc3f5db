#include "text/wordpiece_vocab.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "text/tokenizer_json.h"

namespace megalith {

std::string tokenizer_from_vocab_txt(const std::string& lines, const std::string& where,
                                     std::optional<bool> lowercase) {
  using nlohmann::json;
  json vocab = json::object(), added = json::array();
  bool capitals = false;
  int64_t id = 0;
  for (size_t at = 0; at < lines.size(); id++) {
    size_t end = std::min(lines.find('\n', at), lines.size());
    std::string token = lines.substr(at, end - at);
    at = end + 1;
    if (token.ends_with('\r')) token.pop_back();
    if (vocab.contains(token))
      throw UserError(
          {fmt::format("{}:{}", where, id + 1), "token", "a token that occurs once", '"' + token + "\" twice", ""});
    bool bracketed = token.starts_with('[') && token.ends_with(']') && token.size() > 2;
    if (bracketed && !token.starts_with("[unused"))
      added.push_back(added_token_json(static_cast<TokenId>(id), token));
    else if (!bracketed)
      capitals |= std::any_of(token.begin(), token.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
    vocab[token] = id;
  }
  for (const char* needed : {"[UNK]", "[CLS]", "[SEP]"})
    if (!vocab.contains(needed))
      throw UserError({where, "vocabulary", fmt::format("a WordPiece vocabulary with a line {}", needed),
                       "no such line", "check whether this is a vocab.txt; data.tokenizer: {train: bpe, vocab: 4096} trains a tokenizer on text"});
  bool lower = lowercase.value_or(!capitals);
  auto around = [&](const char* token) { return json{{"SpecialToken", {{"id", token}, {"type_id", 0}}}}; };
  auto special = [&](const char* token) {
    return json{{"id", token}, {"ids", json::array({vocab[token]})}, {"tokens", json::array({token})}};
  };
  json text_part{{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
      second{{"Sequence", {{"id", "B"}, {"type_id", 1}}}};
  json second_end{{"SpecialToken", {{"id", "[SEP]"}, {"type_id", 1}}}};
  json file = tokenizer_file_json({{"type", "WordPiece"},
                                   {"unk_token", "[UNK]"},
                                   {"continuing_subword_prefix", "##"},
                                   {"max_input_chars_per_word", 100},
                                   {"vocab", vocab}},
                                  added);
  file["normalizer"] = {{"type", "BertNormalizer"},
                        {"clean_text", true},
                        {"handle_chinese_chars", true},
                        {"strip_accents", nullptr},
                        {"lowercase", lower}};
  file["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
  file["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", json::array({around("[CLS]"), text_part, around("[SEP]")})},
      {"pair", json::array({around("[CLS]"), text_part, around("[SEP]"), second, second_end})},
      {"special_tokens", {{"[CLS]", special("[CLS]")}, {"[SEP]", special("[SEP]")}}}};
  file["decoder"] = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  return print_json(file);
}

}  // namespace megalith
