// Finds out which kind of tokenizer a path contains, and loads it.
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/hub_name.h"
#include "base/json.h"
#include "text/base64.h"
#include "text/gpt2_files.h"
#include "text/pipeline_tokenizer.h"
#include "text/sentencepiece_tokenizer.h"
#include "text/tiktoken.h"
#include "text/tokenizer.h"
#include "text/wordpiece_vocab.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Names of files that contain the tokenizer of a folder. The first one that exists is used.
constexpr const char* kNames[] = {
    "tokenizer.json", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model",
    "vocab.json",     "encoder.json",    "vocab.txt"};

constexpr const char* kKinds =
    "a tokenizer.json, a SentencePiece .model, a .tiktoken file, a vocab.txt or a folder with one of them";

// Returns the file with the merges of a GPT-2 vocabulary, if it exists.
std::optional<fs::path> merges_beside(const fs::path& vocab) {
  fs::path merges = vocab.parent_path() / (vocab.filename() == "encoder.json" ? "vocab.bpe" : "merges.txt");
  return fs::exists(merges) ? std::optional(merges) : std::nullopt;
}

std::optional<fs::path> find_file(const fs::path& folder) {
  for (const char* name : kNames) {
    fs::path file = folder / name;
    bool pair = file.filename() == "vocab.json" || file.filename() == "encoder.json";
    if (fs::exists(file) && (!pair || merges_beside(file))) return file;
  }
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".tiktoken") return entry.path();
  return std::nullopt;
}

fs::path file_in(const fs::path& folder) {
  if (auto file = find_file(folder)) return *file;
  throw UserError(
      {folder.string(), "tokenizer",
       "a folder with tokenizer.json, tokenizer.model, vocab.json and merges.txt, vocab.txt or a "
       ".tiktoken file",
       "none of them", ""});
}

std::optional<bool> lowercase_setting(const fs::path& config) {
  if (!fs::exists(config)) return std::nullopt;
  json settings = try_parse_json(read_file(config), config.string());
  if (!settings.is_object() || !settings.contains("do_lower_case") || !settings["do_lower_case"].is_boolean())
    return std::nullopt;
  return settings["do_lower_case"].get<bool>();
}

std::unique_ptr<Tokenizer> load_json(const fs::path& file) {
  std::string name = file.filename().string(), where = file.string();
  if (name == "vocab.json" || name == "encoder.json") {
    auto merges = merges_beside(file);
    if (!merges)
      throw UserError({where, "tokenizer", "a file with GPT-2's merges in the same folder", "no such file",
                       name == "vocab.json" ? "add merges.txt" : "add vocab.bpe"});
    return parse_tokenizer_json(
        tokenizer_from_gpt2_files(read_file(file), where, read_file(*merges), merges->string()), where);
  }
  std::vector<std::pair<std::string, std::string>> others;
  if (name == "tokenizer.json")  // a Hugging Face folder: these other files belong to the tokenizer
    for (const char* other : {"tokenizer_config.json", "special_tokens_map.json"})
      if (fs::exists(file.parent_path() / other))
        others.emplace_back(other, read_file(file.parent_path() / other));
  return parse_tokenizer_json(read_file(file), where, std::move(others));
}

}  // namespace

std::unique_ptr<Tokenizer> parse_tokenizer_json(
    std::string_view text, const std::string& where,
    std::vector<std::pair<std::string, std::string>> other_files) {
  json parsed = parse_json(text, where);
  const json* model = parsed.is_object() && parsed.contains("model") ? &parsed["model"] : nullptr;
  if (model && model->is_object() && model->contains("sentencepiece") &&
      (*model)["sentencepiece"].is_string()) {
    // A file that we made from a SentencePiece model contains that model, which is exact. Use the model.
    auto bytes = from_base64((*model)["sentencepiece"].get_ref<const std::string&>());
    if (!bytes) throw UserError({where, "model.sentencepiece", "a SentencePiece model in base 64", "something else", ""});
    return std::make_unique<SentencePieceTokenizer>(std::move(*bytes), where);
  }
  try {
    auto tokenizer = std::make_unique<PipelineTokenizer>(std::string(text), parsed, where);
    for (auto& [name, content] : other_files) tokenizer->add_file(std::move(name), std::move(content));
    return tokenizer;
  } catch (const json::exception&) {
    throw UserError(
        {where, "", "a valid tokenizer.json", "a missing field or a field of the wrong type", ""});
  }
}

fs::path tokenizer_file(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    throw UserError({path.string(), "tokenizer", kKinds, "no such file or folder", where_to_get(path)});
  return fs::is_directory(path) ? file_in(path) : path;
}

std::unique_ptr<Tokenizer> load_tokenizer(const fs::path& path) {
  const fs::path file = tokenizer_file(path);
  std::string extension = file.extension().string(), where = file.string();
  if (extension == ".json") return load_json(file);
  if (extension == ".bpe" && file.filename() == "vocab.bpe" &&
      fs::exists(file.parent_path() / "encoder.json"))
    return load_json(file.parent_path() / "encoder.json");
  if (extension == ".txt" && file.filename() == "merges.txt" && fs::exists(file.parent_path() / "vocab.json"))
    return load_json(file.parent_path() / "vocab.json");
  std::string content = read_file(file);
  if (extension == ".txt")
    return parse_tokenizer_json(
        tokenizer_from_vocab_txt(content, where,
                                 lowercase_setting(file.parent_path() / "tokenizer_config.json")),
        where);
  // Llama 3's tokenizer.model is a rank file.
  if (extension == ".tiktoken" || (extension == ".model" && looks_like_tiktoken(content)))
    return parse_tokenizer_json(tokenizer_from_tiktoken(content, where), where);
  if (extension == ".model") return std::make_unique<SentencePieceTokenizer>(std::move(content), where);
  throw UserError(
      {where, "tokenizer",
       kKinds,
       file.filename().string(), "convert it, or train a tokenizer with data.tokenizer: {train: bpe, vocab: 4096}"});
}

std::unique_ptr<Tokenizer> tokenizer_of_folder(const fs::path& folder) {
  if (!fs::is_directory(folder)) return nullptr;
  auto file = find_file(folder);
  return file ? load_tokenizer(*file) : nullptr;
}

}  // namespace megalith
