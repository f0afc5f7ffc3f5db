#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/units.h"
#include "cli/commands.h"
#include "text/bpe_trainer.h"
#include "text/corpus.h"
#include "text/shards.h"
#include "train/tokenize_progress.h"

namespace megalith {
namespace {

void add_corpus_options(CLI::App* command, const std::shared_ptr<CorpusOptions>& options) {
  command->add_option("--text-field", options->text_field, "field of JSON lines that holds the text")
      ->capture_default_str();
  auto* line =
      command->add_option("--separator", options->separator, "a line with exactly this ends a document");
  command
      ->add_option("--separator-token", options->separator_token,
                   "this text, wherever it stands, ends a document: '<|endoftext|>'")
      ->excludes(line);
}

// The prefix that `--out` names.
std::filesystem::path checked_prefix(const std::string& out) {
  std::filesystem::path prefix = shard_prefix(out);
  std::error_code ignored;
  if (!prefix.has_filename() || std::filesystem::is_directory(prefix, ignored))
    throw UserError({"command line", "--out", "a prefix of files", fmt::format("the folder {}", out),
                     fmt::format("for example {}", (prefix / "train").string())});
  return prefix;
}

CommandResult show_shard(const CommandContext& context, const std::string& name, const std::string& tokenizer,
                         int64_t document, int64_t tokens) {
  TokenShard shard(shard_prefix(name));
  const char* type = shard.width() == TokenWidth::uint16 ? "uint16" : "int32";
  nlohmann::json facts{{"prefix", shard.prefix().string()},
                       {"documents", shard.documents()},
                       {"tokens", shard.tokens()},
                       {"type", type}};
  if (document < 0 && !tokenizer.empty() && shard.documents() > 0) document = 0;
  if (document < 0) {
    print(context, fmt::format("{}: {} documents, {} tokens, {}\n", shard.prefix().string(),
                               shard.documents(), shard.tokens(), type));
    return {ExitCode::done, facts};
  }
  if (document >= shard.documents())
    throw UserError({shard.prefix().string(), "--document",
                     fmt::format("a number below {}", shard.documents()), std::to_string(document), ""});
  const int64_t begin = shard.document_begin(document), length = shard.document_begin(document + 1) - begin;
  std::vector<TokenId> ids(static_cast<size_t>(std::min(length, tokens)));
  shard.copy(begin, std::span(ids));
  facts["document"] = {{"number", document}, {"tokens", length}, {"ids", ids}};
  std::string shown;
  if (tokenizer.empty()) {
    for (TokenId id : ids) shown += fmt::format("{}{}", shown.empty() ? "" : " ", id);
  } else {
    facts["document"]["text"] = shown = load_tokenizer(tokenizer)->decode(ids, /*keep_special=*/true);
  }
  print(context, fmt::format("{}{}\n", shown, length > tokens ? " ..." : ""));
  return {ExitCode::done, facts};
}

}  // namespace

void add_text(CLI::App& app, CommandContext& context) {
  {
    CLI::App* command = app.add_subcommand("tokenize", "text to token shards (PREFIX.bin, PREFIX.idx)");
    auto tokenizer = std::make_shared<std::string>(), out = std::make_shared<std::string>();
    auto files = std::make_shared<std::vector<std::string>>();
    auto options = std::make_shared<CorpusOptions>();
    command
        ->add_option("--tokenizer", *tokenizer,
                     "tokenizer.json, SentencePiece .model, .tiktoken, vocab.txt, or a folder with one")
        ->required();
    command->add_option("--out", *out, "prefix of the shards")->required();
    command->add_option("FILE", *files, "text, JSON lines, gzip or zstd; patterns too")->required();
    auto threads = std::make_shared<int64_t>(0);
    command->add_option("--threads", *threads, "0: the machine's cores")
        ->check(CLI::Range(0, 4096))
        ->capture_default_str();
    add_corpus_options(command, options);
    command->callback([=, &context] {
      context.action = [=, &context] {
        const std::filesystem::path prefix = checked_prefix(*out);
        auto loaded = load_tokenizer(*tokenizer);
        auto counts = tokenize_with_progress(expand_files(*files), *options, *loaded, prefix, *threads);
        print(context, fmt::format("{}.bin: {} documents, {} tokens from {}\n", prefix.string(), counts.documents,
                                   counts.tokens, show(Bytes(counts.text_bytes))));
        return CommandResult{ExitCode::done,
                             {{"prefix", prefix.string()},
                              {"documents", counts.documents},
                              {"tokens", counts.tokens},
                              {"bytes", counts.text_bytes},
                              {"not_utf8", counts.not_utf8}}};
      };
    });
  }
  {
    CLI::App* command = app.add_subcommand("shards", "what token shards hold");
    auto prefix = std::make_shared<std::string>(), tokenizer = std::make_shared<std::string>();
    auto document = std::make_shared<int64_t>(-1), tokens = std::make_shared<int64_t>(100);
    command->add_option("PREFIX", *prefix, "of PREFIX.bin and PREFIX.idx")->required();
    command->add_option("--tokenizer", *tokenizer, "shows a document's text instead of its ids");
    command->add_option("--document", *document, "number of a document to show, from 0");
    command->add_option("--tokens", *tokens, "at most so many of it")
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
        ->capture_default_str();
    command->callback([=, &context] {
      context.action = [=, &context] { return show_shard(context, *prefix, *tokenizer, *document, *tokens); };
    });
  }
  {
    CLI::App* group = app.add_subcommand("tokenizer", "make tokenizers");
    group->require_subcommand(1);
    CLI::App* command = group->add_subcommand("train", "learn a byte-level BPE vocabulary from text");
    auto vocab = std::make_shared<int64_t>(32000);
    auto out = std::make_shared<std::string>();
    auto files = std::make_shared<std::vector<std::string>>(),
         special = std::make_shared<std::vector<std::string>>();
    auto options = std::make_shared<CorpusOptions>();
    command->add_option("--vocab", *vocab, "number of tokens")->capture_default_str();
    command->add_option("--out", *out, "folder for tokenizer.json")->required();
    command->add_option("--special", *special, "further special tokens");
    command->add_option("FILE", *files, "text, JSON lines, gzip or zstd; patterns too")->required();
    add_corpus_options(command, options);
    command->callback([=, &context] {
      context.action = [=, &context] {
        BpeTrainerOptions trainer;
        trainer.corpus = *options;
        std::string json = train_bpe(expand_files(*files), *vocab, *special, {}, trainer);
        std::filesystem::create_directories(*out);
        std::filesystem::path file = std::filesystem::path(*out) / "tokenizer.json";
        write_file_atomically(file, json);
        int64_t size = parse_tokenizer_json(json, file.string())->vocab_size();
        print(context, fmt::format("{}: {} tokens\n", file.string(), size));
        return CommandResult{ExitCode::done, {{"tokenizer", file.string()}, {"vocab", size}}};
      };
    });
  }
}

}  // namespace megalith
