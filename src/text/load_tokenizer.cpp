// Which kind of tokenizer a path is.
#include <nlohmann/json.hpp>

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "text/pipeline_tokenizer.h"
#include "text/tokenizer.h"

namespace megalith {
namespace {

using nlohmann::json;

std::unique_ptr<PipelineTokenizer> parse(std::string text, const std::string& where) {
  try {
    return std::make_unique<PipelineTokenizer>(std::move(text), where);
  } catch (const json::exception& error) {
    throw UserError({where, "", "a tokenizer.json", "", fmt::format("it cannot be read: {}", error.what())});
  }
}

// BERT's vocab.txt, one token a line, as the tokenizer.json it stands for.
std::string wordpiece_json(const std::string& lines, const std::string& where,
                           std::optional<bool> lowercase) {
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
          {fmt::format("{}:{}", where, id + 1), "token", "every token once", '"' + token + "\" again", ""});
    bool bracketed = token.starts_with('[') && token.ends_with(']') && token.size() > 2;
    if (bracketed && !token.starts_with("[unused"))
      added.push_back({{"id", id},
                       {"content", token},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", true}});
    else if (!bracketed)
      capitals |= std::any_of(token.begin(), token.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
    vocab[token] = id;
  }
  for (const char* needed : {"[UNK]", "[CLS]", "[SEP]"})
    if (!vocab.contains(needed))
      throw UserError({where, "vocabulary", fmt::format("a WordPiece vocabulary with a line {}", needed),
                       "none", "is this a vocab.txt?"});
  bool lower = lowercase.value_or(!capitals);
  auto around = [&](const char* token) { return json{{"SpecialToken", {{"id", token}, {"type_id", 0}}}}; };
  auto special = [&](const char* token) {
    return json{{"id", token}, {"ids", json::array({vocab[token]})}, {"tokens", json::array({token})}};
  };
  json text_part{{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
      second{{"Sequence", {{"id", "B"}, {"type_id", 1}}}};
  json second_end{{"SpecialToken", {{"id", "[SEP]"}, {"type_id", 1}}}};
  json file{{"version", "1.0"},
            {"truncation", nullptr},
            {"padding", nullptr},
            {"added_tokens", added},
            {"normalizer",
             {{"type", "BertNormalizer"},
              {"clean_text", true},
              {"handle_chinese_chars", true},
              {"strip_accents", nullptr},
              {"lowercase", lower}}},
            {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
            {"post_processor",
             {{"type", "TemplateProcessing"},
              {"single", json::array({around("[CLS]"), text_part, around("[SEP]")})},
              {"pair", json::array({around("[CLS]"), text_part, around("[SEP]"), second, second_end})},
              {"special_tokens", {{"[CLS]", special("[CLS]")}, {"[SEP]", special("[SEP]")}}}}},
            {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
            {"model",
             {{"type", "WordPiece"},
              {"unk_token", "[UNK]"},
              {"continuing_subword_prefix", "##"},
              {"max_input_chars_per_word", 100},
              {"vocab", vocab}}}};
  return file.dump();
}

std::optional<bool> lowercase_setting(const std::filesystem::path& config) {
  if (!std::filesystem::exists(config)) return std::nullopt;
  json settings = json::parse(read_file(config), nullptr, false);
  if (!settings.is_object() || !settings.contains("do_lower_case") || !settings["do_lower_case"].is_boolean())
    return std::nullopt;
  return settings["do_lower_case"].get<bool>();
}

}  // namespace

std::unique_ptr<Tokenizer> parse_tokenizer_json(std::string_view text, const std::string& where) {
  return parse(std::string(text), where);
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  fs::path file = path;
  if (fs::is_directory(path)) {
    file = path / "tokenizer.json";
    if (!fs::exists(file)) file = path / "vocab.txt";
    if (!fs::exists(file))
      throw UserError(
          {path.string(), "tokenizer", "a folder with a tokenizer.json or a vocab.txt", "neither", ""});
  }
  std::string extension = file.extension().string(), content = read_file(file), where = file.string();
  fs::path config = file.parent_path() / "tokenizer_config.json";
  std::unique_ptr<PipelineTokenizer> tokenizer;
  if (extension == ".json")
    tokenizer = parse(std::move(content), where);
  else if (extension == ".txt")
    tokenizer = parse(wordpiece_json(content, where, lowercase_setting(config)), where);
  else
    throw UserError({where, "tokenizer", "a tokenizer.json, a vocab.txt or a folder that holds one",
                     file.filename().string(),
                     "convert it, or train one: data.tokenizer: {train: bpe, vocab: 4096}"});
  if (file.filename() == "tokenizer.json")  // a folder of Hugging Face's: its other files belong to it
    for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"})
      if (fs::exists(file.parent_path() / name))
        tokenizer->add_file(name, read_file(file.parent_path() / name));
  return tokenizer;
}

}  // namespace megalith
