#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/files.h"
#include "checkpoint/llama2c.h"
#include "checkpoint/store.h"
#include "checkpoint/verify.h"
#include "cli/commands.h"
#include "cli/loaded_model.h"
#include "text/llama2c.h"
#include "train/export_model.h"
#include "train/upcycle.h"

namespace megalith {
namespace {

// Number of pieces that a llama2.c model file speaks of: the sixth number of its header, negative when untied.
int64_t llama2c_vocab(const std::string& path) {
  MappedFile file(path);
  if (file.bytes().size() < 28) return 0;  // import_llama2c says what is wrong with it
  int32_t vocab = 0;
  std::memcpy(&vocab, file.bytes().data() + 20, sizeof vocab);
  return std::abs(static_cast<int64_t>(vocab));
}

// An empty one: as stored.
std::optional<DType> dtype_of(const std::string& word) {
  if (word == "stored") return std::nullopt;
  return word == "bf16" ? DType::bf16 : word == "fp16" ? DType::f16 : DType::f32;
}

void import_file(const std::string& source, const std::string& tokenizer, const std::string& out) {
  std::string json;
  if (tokenizer.ends_with(".json")) json = read_file(tokenizer);
  else if (!tokenizer.empty()) json = tokenizer_from_llama2c(read_file(tokenizer), llama2c_vocab(source), tokenizer);
  import_llama2c(source, json, out);
}

void add_import(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("import", "a Hugging Face folder or a llama2.c file, checked, as a folder of ours");
  auto source = std::make_shared<std::string>(), out = std::make_shared<std::string>(),
       tokenizer = std::make_shared<std::string>();
  auto dtype = std::make_shared<std::string>("stored");
  command->add_option("SRC", *source, "a Hugging Face folder, or model.bin of llama2.c, version 0")->required();
  command->add_option("--out", *out, "folder to make")->required();
  command->add_option("--tokenizer", *tokenizer, "of a llama2.c file: its .bin or a tokenizer.json");
  command->add_option("--dtype", *dtype, "of a folder's weights: stored, fp32, bf16 or fp16")
      ->capture_default_str()->check(CLI::IsMember({"stored", "fp32", "bf16", "fp16"}));
  auto upcycling = std::make_shared<Upcycling>();
  CLI::Option* experts = command->add_option(
      "--upcycle", upcycling->experts, "make a model with so many experts, each a copy of the dense feed-forward layer");
  command->add_option("--top-k", upcycling->top_k, "experts that a token passes, with --upcycle")
      ->capture_default_str()
      ->needs(experts);
  command->callback([=, &context] {
    context.action = [=, &context] {
      if (!std::filesystem::exists(*source))
        throw UserError({"command line", "SRC", "a folder or a llama2.c file", "nothing of the name " + *source, ""});
      const bool folder = std::filesystem::is_directory(*source);
      if (folder && !tokenizer->empty())
        throw UserError({"command line", "--tokenizer", "it only with a llama2.c file", "it with a folder",
                         "the folder's own tokenizer is taken"});
      if (!folder && *dtype != "stored" && *dtype != "fp32")
        throw UserError({"command line", "--dtype", "stored or fp32 with a llama2.c file", *dtype,
                         "import it first, then export it in another type"});
      if (!folder && experts->count() > 0)
        throw UserError(
            {"command line", "--upcycle", "it only with a folder", "it with a llama2.c file", "import that first"});
      if (experts->count() > 0) upcycle_model(*source, *out, dtype_of(*dtype), *upcycling);
      else if (folder) export_model(*source, *out, dtype_of(*dtype));
      else import_file(*source, *tokenizer, *out);
      print(context, *out + "\n");
      return CommandResult{ExitCode::done, {{"folder", *out}}};
    };
  });
}

void add_export(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("export", "weights and tokenizer of a checkpoint as a Hugging Face folder");
  auto path = std::make_shared<std::string>(), out = std::make_shared<std::string>(),
       dtype = std::make_shared<std::string>("fp32");
  command->add_option("CKPT", *path, "a run, a checkpoint or a Hugging Face folder")->required();
  command->add_option("--out", *out, "folder to make")->required();
  command->add_option("--dtype", *dtype, "fp32, bf16, fp16, or as stored")->capture_default_str()
      ->check(CLI::IsMember({"fp32", "bf16", "fp16", "stored"}));
  command->callback([=, &context] {
    context.action = [=, &context] {
      export_model(*path, *out, dtype_of(*dtype));
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
      if (result.ok())
        print(context,
              fmt::format("{}: {} files, {}, as written\n", checkpoint.string(), result.files, show(Bytes(result.bytes))));
      return CommandResult{result.ok() ? ExitCode::done : ExitCode::fault, {{"ok", result.ok()}, {"problems", problems}}};
    };
  });
}

}  // namespace

LoadedModel load_with_tokenizer(const std::string& path) {
  LoadedModel model = load_model(path);
  if (!model.tokenizer)
    throw UserError({model.folder.string(), "tokenizer.json", "a tokenizer beside the weights", "none",
                     "copy the tokenizer that the model was trained with into the folder"});
  return model;
}

void add_model(CLI::App& app, CommandContext& context) {
  add_generate(app, context);
  add_eval(app, context);
  add_import(app, context);
  add_export(app, context);
  add_checkpoint(app, context);
}

}  // namespace megalith
