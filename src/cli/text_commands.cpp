#include <memory>

#include "base/files.h"
#include "base/units.h"
#include "cli/commands.h"
#include "text/bpe_trainer.h"
#include "text/corpus.h"
#include "text/tokenize.h"

namespace megalith {
namespace {

void add_corpus_options(CLI::App* command, const std::shared_ptr<CorpusOptions>& options) {
  command->add_option("--text-field", options->text_field, "field of JSON lines that holds the text")->capture_default_str();
  command->add_option("--separator", options->separator, "a line with exactly this ends a document");
}

}  // namespace

void add_text(CLI::App& app, CommandContext& context) {
  {
    CLI::App* command = app.add_subcommand("tokenize", "text to token shards (PREFIX.bin, PREFIX.idx)");
    auto tokenizer = std::make_shared<std::string>(), out = std::make_shared<std::string>();
    auto files = std::make_shared<std::vector<std::string>>();
    auto options = std::make_shared<CorpusOptions>();
    command->add_option("--tokenizer", *tokenizer, "tokenizer.json or vocab.txt")->required();
    command->add_option("--out", *out, "prefix of the shards")->required();
    command->add_option("FILE", *files, "text, JSON lines, gzip or zstd; patterns too")->required();
    add_corpus_options(command, options);
    command->callback([=, &context] {
      context.action = [=, &context] {
        auto loaded = load_tokenizer(*tokenizer);
        TokenizeCounts counts = tokenize_corpus(expand_files(*files), *options, *loaded, *out);
        print(context, fmt::format("{}.bin: {} documents, {} tokens from {}\n", *out, counts.documents, counts.tokens,
                                   show(Bytes(counts.text_bytes))));
        return CommandResult{ExitCode::done,
                             {{"prefix", *out}, {"documents", counts.documents}, {"tokens", counts.tokens}, {"bytes", counts.text_bytes}}};
      };
    });
  }
  {
    CLI::App* group = app.add_subcommand("tokenizer", "make tokenizers");
    group->require_subcommand(1);
    CLI::App* command = group->add_subcommand("train", "learn a byte-level BPE vocabulary from text");
    auto vocab = std::make_shared<int64_t>(32000);
    auto out = std::make_shared<std::string>();
    auto files = std::make_shared<std::vector<std::string>>(), special = std::make_shared<std::vector<std::string>>();
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
