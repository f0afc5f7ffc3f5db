#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>

#include "base/files.h"
#include "checkpoint/llama2c.h"
#include "checkpoint/store.h"
#include "checkpoint/verify.h"
#include "cli/commands.h"
#include "text/llama2c.h"
#include "train/evaluate.h"
#include "train/export_model.h"
#include "train/generate.h"
#include "train/load_model.h"

namespace megalith {
namespace {

// CLI11's own ranges print their ends with 300 digits.
CLI::Validator number_between(double least, double most = std::numeric_limits<double>::infinity()) {
  return CLI::Validator(
      [=](std::string& text) {
        double value = 0;
        auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most) return std::string();
        return fmt::format("expected a number from {}{}, got {}", least, std::isinf(most) ? "" : fmt::format(" to {}", most), text);
      },
      "");
}

LoadedModel load_with_tokenizer(const std::string& path) {
  LoadedModel model = load_model(path);
  if (!model.tokenizer)
    throw UserError({model.folder.string(), "tokenizer.json", "a tokenizer beside the weights", "none",
                     "copy the tokenizer that the model was trained with into the folder"});
  return model;
}

// Number of pieces that a llama2.c model file speaks of: the sixth number of its header, negative when untied.
int64_t llama2c_vocab(const std::string& path) {
  MappedFile file(path);
  if (file.bytes().size() < 28) return 0;  // import_llama2c says what is wrong with it
  int32_t vocab = 0;
  std::memcpy(&vocab, file.bytes().data() + 20, sizeof vocab);
  return std::abs(static_cast<int64_t>(vocab));
}

void add_generate(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("generate", "continue a text");
  auto path = std::make_shared<std::string>();
  auto settings = std::make_shared<GenerateSettings>();
  command->add_option("CKPT", *path, "a run, a checkpoint or a Hugging Face folder")->required();
  command->add_option("--prompt", settings->prompt, "text to continue; none: begin a document");
  command->add_option("--tokens", settings->tokens, "at most this many")->capture_default_str()->check(number_between(0));
  command->add_option("--temperature", settings->temperature, "0: always the likeliest")->capture_default_str()->check(number_between(0));
  command->add_option("--top-k", settings->top_k, "choose among the k likeliest; 0: all")->capture_default_str()->check(number_between(0));
  command->add_option("--top-p", settings->top_p, "choose among the likeliest of this total probability")->capture_default_str()->check(number_between(0, 1));
  command->add_option("--seed", settings->seed, "of the choices")->capture_default_str();
  command->callback([=, &context] {
    context.action = [=, &context] {
      LoadedModel model = load_with_tokenizer(*path);
      print(context, settings->prompt);
      std::string text = generate(*model.engine, *model.tokenizer, *settings, [&](const std::string& piece) { print(context, piece); });
      print(context, "\n");
      return CommandResult{ExitCode::done, {{"text", text}, {"prompt", settings->prompt}}};
    };
  });
}

void add_eval(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("eval", "loss, perplexity and bits per byte on a text");
  auto path = std::make_shared<std::string>();
  auto files = std::make_shared<std::vector<std::string>>();
  auto window = std::make_shared<int64_t>(0), stride = std::make_shared<int64_t>(0);
  command->add_option("CKPT", *path, "a run, a checkpoint or a Hugging Face folder")->required();
  command->add_option("--data", *files, "text")->required();
  command->add_option("--window", *window, "tokens at once; default: the model's context");
  command->add_option("--stride", *stride, "tokens from window to window; default: the window");
  command->callback([=, &context] {
    context.action = [=, &context] {
      LoadedModel model = load_with_tokenizer(*path);
      Evaluation e = evaluate_text(*model.engine, *model.tokenizer, *files, *window, *stride);
      print(context, fmt::format("loss {:.4f}  perplexity {:.3f}  bits per byte {:.4f}  ({} tokens, {} bytes)\n", e.loss,
                                 e.perplexity, e.bits_per_byte, e.tokens, e.bytes));
      return CommandResult{ExitCode::done, {{"loss", e.loss}, {"perplexity", e.perplexity}, {"bits_per_byte", e.bits_per_byte},
                                            {"tokens", e.tokens}, {"bytes", e.bytes}}};
    };
  });
}

void add_import(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("import", "a llama2.c model file to a Hugging Face folder");
  auto source = std::make_shared<std::string>(), out = std::make_shared<std::string>(), tokenizer = std::make_shared<std::string>();
  command->add_option("SRC", *source, "model.bin of llama2.c, version 0")->required();
  command->add_option("--out", *out, "folder to make")->required();
  command->add_option("--tokenizer", *tokenizer, "its tokenizer: llama2.c's .bin or a tokenizer.json");
  command->callback([=, &context] {
    context.action = [=, &context] {
      std::string json;
      if (tokenizer->ends_with(".json")) json = read_file(*tokenizer);
      else if (!tokenizer->empty()) json = tokenizer_from_llama2c(read_file(*tokenizer), llama2c_vocab(*source), *tokenizer);
      import_llama2c(*source, json, *out);
      print(context, *out + "\n");
      return CommandResult{ExitCode::done, {{"folder", *out}}};
    };
  });
}

void add_export(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("export", "weights and tokenizer of a checkpoint as a Hugging Face folder");
  auto path = std::make_shared<std::string>(), out = std::make_shared<std::string>(), dtype = std::make_shared<std::string>("fp32");
  command->add_option("CKPT", *path, "a run, a checkpoint or a Hugging Face folder")->required();
  command->add_option("--out", *out, "folder to make")->required();
  command->add_option("--dtype", *dtype, "fp32, bf16 or fp16")->capture_default_str()->check(CLI::IsMember({"fp32", "bf16", "fp16"}));
  command->callback([=, &context] {
    context.action = [=, &context] {
      export_model(*path, *out, *dtype == "bf16" ? DType::bf16 : *dtype == "fp16" ? DType::f16 : DType::f32);
      print(context, *out + "\n");
      return CommandResult{ExitCode::done, {{"folder", *out}}};
    };
  });
}

void add_checkpoint(CLI::App& app, CommandContext& context) {
  CLI::App* group = app.add_subcommand("checkpoint", "look after checkpoints");
  group->require_subcommand(1);
  CLI::App* command = group->add_subcommand("verify", "is every byte as it was written?");
  auto dir = std::make_shared<std::string>();
  command->add_option("DIR", *dir, "a checkpoint, or a run: its newest")->required();
  command->callback([=, &context] {
    context.action = [=, &context] {
      std::filesystem::path checkpoint = *dir;
      if (auto all = list_checkpoints(checkpoint / "checkpoints"); !all.empty()) checkpoint = all.front().dir;
      VerifyResult result = verify(checkpoint);
      nlohmann::json problems = nlohmann::json::array();
      for (const VerifyProblem& problem : result.problems) {
        print(context, show(problem) + "\n");
        problems.push_back({{"file", problem.file}, {"what", problem.what}});
      }
      if (result.ok()) print(context, fmt::format("{}: {} files, {}, as written\n", checkpoint.string(), result.files, show(Bytes(result.bytes))));
      return CommandResult{result.ok() ? ExitCode::done : ExitCode::fault, {{"ok", result.ok()}, {"problems", problems}}};
    };
  });
}

}  // namespace

void add_model(CLI::App& app, CommandContext& context) {
  add_generate(app, context);
  add_eval(app, context);
  add_import(app, context);
  add_export(app, context);
  add_checkpoint(app, context);
}

}  // namespace megalith
