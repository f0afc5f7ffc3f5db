// Commands that convert a model to a new model folder: import, export.
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/hub_name.h"
#include "base/log.h"
#include "cli/light_commands.h"
#include "tools/export_model.h"
#include "tools/import_llama2c.h"
#include "tools/upcycle.h"

namespace megalith {
namespace {

struct ImportArguments {
  std::string source, out, tokenizer, dtype = "stored";
  std::optional<int64_t> experts;  // --upcycle
  int64_t top_k = 2;
};

struct ExportArguments {
  std::string path, out, dtype = "fp32";
};

// Empty for "stored".
std::optional<DType> dtype_of(const std::string& word) {
  if (word == "stored") return std::nullopt;
  return word == "bf16" ? DType::bf16 : word == "fp16" ? DType::f16 : DType::f32;
}

CommandResult import_folder_or_file(const CommandContext& context, const ImportArguments& a) {
  if (!std::filesystem::exists(a.source))
    throw UserError({"command line", "SRC", "a folder or a llama2.c file", a.source + ", which does not exist",
                     where_to_get(a.source)});
  const bool folder = std::filesystem::is_directory(a.source);
  if (folder && !a.tokenizer.empty())
    throw UserError({"command line", "--tokenizer", "no --tokenizer with a folder", a.tokenizer,
                     "remove it: the folder's own tokenizer is used"});
  if (!folder && a.dtype != "stored" && a.dtype != "fp32")
    throw UserError({"command line", "--dtype", "stored or fp32 with a llama2.c file", a.dtype,
                     "import the file first, then export the folder in another type"});
  if (!folder && a.experts)
    throw UserError({"command line", "--upcycle", "a folder to upcycle", "the llama2.c file " + a.source,
                     "import the file first, then upcycle the folder"});
  if (a.experts) upcycle_model(a.source, a.out, dtype_of(a.dtype), {*a.experts, a.top_k});
  else if (folder) export_model(a.source, a.out, dtype_of(a.dtype));
  else import_llama2c(a.source, llama2c_tokenizer(a.source, a.tokenizer), a.out);
  if (!folder && a.tokenizer.empty())
    log::warn("{}: the folder has no tokenizer, so that generate and eval will refuse it: add a tokenizer.json, or import "
              "again with --tokenizer FILE (llama2.c's tokenizer.bin or a tokenizer.json)", a.out);
  print(context, a.out + "\n");
  return {ExitCode::done, {{"folder", a.out}}};
}

CommandResult export_folder(const CommandContext& context, const ExportArguments& a) {
  export_model(a.path, a.out, dtype_of(a.dtype));
  print(context, a.out + "\n");
  return {ExitCode::done, {{"folder", a.out}}};
}

}  // namespace

Command import_command() {
  auto a = std::make_shared<ImportArguments>();
  return {"import", "Check a model folder or a llama2.c file, and copy it to a new folder with checksums.",
          "The new folder has the format of Hugging Face. A run starts from it with model.from. llama2.c's models, such as "
          "stories15M.bin, are at huggingface.co/karpathy/tinyllamas. Their tokenizer.bin is at "
          "github.com/karpathy/llama2.c.",
          {"megalith import runs/first --out imported --dtype bf16", "megalith import runs/first --out sparse --upcycle 4"},
          {{"SRC", &a->source,
            "Model: a run directory, a checkpoint, a Hugging Face folder, or a model file of llama2.c (version 0).",
            {.required = true}},
           {"--out DIR", &a->out, "New folder.", {.required = true}},
           {"--tokenizer FILE", &a->tokenizer,
            "Tokenizer of a llama2.c model: its tokenizer.bin, or a tokenizer.json. Default: none. Then `generate` and "
            "`eval` refuse the new folder."},
           {"--dtype TYPE", &a->dtype, "Type of the weights: stored (unchanged), fp32, bf16 or fp16.",
            {.shows_default = true, .words = {"stored", "fp32", "bf16", "fp16"}}},
           {"--upcycle N", &a->experts,
            "Turn a dense model into a model with N experts per layer. Each expert is a copy of the feed-forward layer. "
            "Default: do not change the model."},
           {"--top-k K", &a->top_k, "Number of experts that each token uses.",
            {.shows_default = true, .needs = "--upcycle"}}},
          [a](const CommandContext& context) { return import_folder_or_file(context, *a); }};
}

Command export_command() {
  auto a = std::make_shared<ExportArguments>();
  return {"export", "Export a model as a Hugging Face folder, without the state of the optimizer.",
          "Other programs, such as transformers, open this folder.",
          {"megalith export runs/first --out exported", "megalith export runs/first --out exported-bf16 --dtype bf16"},
          {{"CKPT", &a->path, kModelPath, {.required = true}},
           {"--out DIR", &a->out, "New folder.", {.required = true}},
           {"--dtype TYPE", &a->dtype, "Type of the weights: fp32, bf16, fp16 or stored (unchanged).",
            {.shows_default = true, .words = {"fp32", "bf16", "fp16", "stored"}}}},
          [a](const CommandContext& context) { return export_folder(context, *a); }};
}

}  // namespace megalith
