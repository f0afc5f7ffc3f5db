#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/units.h"
#include "checkpoint/writer.h"
#include "cli/light_commands.h"
#include "report/tokenize_progress.h"
#include "text/bpe_trainer.h"
#include "text/corpus.h"
#include "text/shards.h"

namespace megalith {
namespace {

CommandOption corpus_files(std::vector<std::string>& files) {
  return {"FILE", &files,
          "Text files, or JSON lines (.jsonl, .ndjson). They may be compressed (.gz, .zst). Patterns such as 'books/*.txt' "
          "are allowed.",
          {.required = true}};
}

void add_corpus_options(std::vector<CommandOption>& options, CorpusOptions& corpus) {
  options.push_back(
      {"--text-field NAME", &corpus.text_field, "Field of a JSON line that contains the text.", {.shows_default = true}});
  options.push_back({"--separator LINE", &corpus.separator,
                     "In text files, a line with exactly this text ends a document. Default: each file is one document."});
  options.push_back({"--separator-token TEXT", &corpus.separator_token,
                     "In text files, this text ends a document, anywhere in a line. Example: '<|endoftext|>'. Default: each "
                     "file is one document.",
                     {.excludes = "--separator"}});
}

// Returns the prefix that `--out` names. Throws UserError if that is a folder.
std::filesystem::path checked_prefix(const std::string& out) {
  std::filesystem::path prefix = shard_prefix(out);
  std::error_code ignored;
  if (!prefix.has_filename() || std::filesystem::is_directory(prefix, ignored))
    throw UserError({"command line", "--out", "a prefix of file names", fmt::format("the folder {}", out),
                     fmt::format("add a name, such as {}", (prefix / "train").string())});
  return prefix;
}

struct TokenizeArguments {
  std::string tokenizer, out;
  std::vector<std::string> files;
  int64_t threads = 0;
  CorpusOptions corpus;
};

CommandResult tokenize(const CommandContext& context, const TokenizeArguments& a) {
  const std::filesystem::path prefix = checked_prefix(a.out);
  auto loaded = load_tokenizer(a.tokenizer);
  auto counts = tokenize_with_progress(expand_files(a.files), a.corpus, *loaded, prefix, a.threads);
  print(context, fmt::format("{}.bin: {} documents, {} tokens from {}\n", prefix.string(), counts.documents,
                             counts.tokens, show(Bytes(counts.text_bytes))));
  return {ExitCode::done,
          {{"prefix", prefix.string()},
           {"documents", counts.documents},
           {"tokens", counts.tokens},
           {"bytes", counts.text_bytes},
           {"not_utf8", counts.not_utf8}}};
}

struct ShardsArguments {
  std::string prefix, tokenizer;
  int64_t document = -1, tokens = 100;
};

CommandResult show_shard(const CommandContext& context, const ShardsArguments& a) {
  expect_shard(a.prefix);
  TokenShard shard(shard_prefix(a.prefix));
  int64_t document = a.document;
  const char* type = shard.width() == TokenWidth::uint16 ? "uint16" : "int32";
  nlohmann::json facts{{"prefix", shard.prefix().string()},
                       {"documents", shard.documents()},
                       {"tokens", shard.tokens()},
                       {"type", type}};
  if (document < 0 && !a.tokenizer.empty() && shard.documents() > 0) document = 0;
  if (document < 0) {
    print(context, fmt::format("{}: {} documents, {} tokens, {}\n", shard.prefix().string(),
                               shard.documents(), shard.tokens(), type));
    return {ExitCode::done, facts};
  }
  if (document >= shard.documents())
    throw UserError({shard.prefix().string(), "--document",
                     fmt::format("a number below {} (documents count from 0)", shard.documents()),
                     std::to_string(document), ""});
  const int64_t begin = shard.document_begin(document), length = shard.document_begin(document + 1) - begin;
  std::vector<TokenId> ids(static_cast<size_t>(std::min(length, a.tokens)));
  shard.copy(begin, std::span(ids));
  facts["document"] = {{"number", document}, {"tokens", length}, {"ids", ids}};
  std::string shown;
  if (a.tokenizer.empty()) {
    for (TokenId id : ids) shown += fmt::format("{}{}", shown.empty() ? "" : " ", id);
  } else {
    facts["document"]["text"] = shown = load_tokenizer(a.tokenizer)->decode(ids, /*keep_special=*/true);
  }
  print(context, fmt::format("{}{}\n", shown, length > a.tokens ? " ..." : ""));
  return {ExitCode::done, facts};
}

struct TokenizerArguments {
  int64_t vocab = 32000;
  std::string out;
  std::vector<std::string> files, special;
  CorpusOptions corpus;
};

CommandResult train_tokenizer(const CommandContext& context, const TokenizerArguments& a) {
  check_new_folder(a.out);  // before the training, which may take long
  BpeTrainerOptions trainer;
  trainer.corpus = a.corpus;
  std::string json = train_bpe(expand_files(a.files), a.vocab, a.special, {}, trainer);
  std::filesystem::create_directories(a.out);
  std::filesystem::path file = std::filesystem::path(a.out) / "tokenizer.json";
  write_file_atomically(file, json);
  int64_t size = parse_tokenizer_json(json, file.string())->vocab_size();
  print(context, fmt::format("{}: {} tokens\n", file.string(), size));
  return {ExitCode::done, {{"tokenizer", file.string()}, {"vocab", size}}};
}

}  // namespace

Command tokenize_command() {
  auto a = std::make_shared<TokenizeArguments>();
  Command command{
      "tokenize", "Convert text to token shards (files of token ids).",
      "A run on token shards starts faster than a run on text. The command writes PREFIX.bin (token ids), PREFIX.idx (where "
      "documents begin) and PREFIX.sums (checksums). If it is interrupted, run it again: it continues.",
      {"megalith tokenize my.txt --tokenizer runs/first --out tokens/my",
       "megalith tokenize my.txt --tokenizer runs/first --out tokens/parts --separator-token 'END OF TERMS AND CONDITIONS'"},
      {corpus_files(a->files),
       {"--tokenizer FILE", &a->tokenizer,
        "Tokenizer: tokenizer.json, SentencePiece .model, .tiktoken, vocab.txt, or a folder with one of them, such as a run "
        "directory.",
        {.required = true}},
       {"--out PREFIX", &a->out, "Path of the new files without their endings, such as tokens/train.", {.required = true}},
       {"--threads N", &a->threads, "Number of threads. 0 means one thread per core.",
        {.shows_default = true, .least = 0, .most = 4096}}},
      [a](const CommandContext& context) { return tokenize(context, *a); }};
  add_corpus_options(command.options, a->corpus);
  return command;
}

Command shards_command() {
  auto a = std::make_shared<ShardsArguments>();
  return {"shards", "Show the contents of token shards.",
          "Without options, the command prints the numbers of documents and tokens. `megalith tokenize` writes token "
          "shards. The first example of `megalith tokenize --help` writes tokens/my.",
          {"megalith shards tokens/my", "megalith shards tokens/my --document 0 --tokenizer runs/first"},
          {{"PREFIX", &a->prefix, "Path of the shards without .bin or .idx.", {.required = true}},
           {"--tokenizer FILE", &a->tokenizer,
            "Show text instead of token ids. FILE is the tokenizer that made the shards, or a folder with it. Default: show "
            "token ids."},
           {"--document N", &a->document,
            "Number of the document to show, counted from 0. Default: no document, or document 0 with --tokenizer.",
            {.least = 0}},
           {"--tokens N", &a->tokens, "Largest number of tokens to show.", {.shows_default = true, .least = 1}}},
          [a](const CommandContext& context) { return show_shard(context, *a); }};
}

Command tokenizer_command() {
  auto a = std::make_shared<TokenizerArguments>();
  Command train{"train", "Train a byte-level BPE tokenizer on text.",
                "The command writes tokenizer.json, in the format of Hugging Face. A run can also train its own tokenizer: "
                "see `megalith config data.tokenizer`.",
                {"megalith tokenizer train my.txt --vocab 500 --out tok",
                 "megalith tokenizer train my.txt --vocab 500 --out tok-chat --special '<|user|>' '<|model|>'"},
                {corpus_files(a->files),
                 {"--vocab N", &a->vocab, "Size of the vocabulary in tokens.", {.shows_default = true}},
                 {"--out DIR", &a->out, "New folder for tokenizer.json.", {.required = true}},
                 {"--special TOKEN", &a->special,
                  "Special tokens to add. <|endoftext|> is always added. Default: no others."}},
                [a](const CommandContext& context) { return train_tokenizer(context, *a); }};
  add_corpus_options(train.options, a->corpus);
  return {"tokenizer", "Train tokenizers.", "", train.examples, {}, {}, {train}};
}

}  // namespace megalith
