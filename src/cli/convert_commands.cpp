// Commands that convert a model to a new model folder: import, export.
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

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
    throw UserError({"command line", "SRC", "a folder or a llama2.c file", "nothing of the name " + a.source, ""});
  const bool folder = std::filesystem::is_directory(a.source);
  if (folder && !a.tokenizer.empty())
    throw UserError({"command line", "--tokenizer", "it only with a llama2.c file", "it with a folder",
                     "the folder's own tokenizer is taken"});
  if (!folder && a.dtype != "stored" && a.dtype != "fp32")
    throw UserError({"command line", "--dtype", "stored or fp32 with a llama2.c file", a.dtype,
                     "import it first, then export it in another type"});
  if (!folder && a.experts)
    throw UserError(
        {"command line", "--upcycle", "it only with a folder", "it with a llama2.c file", "import that first"});
  if (a.experts) upcycle_model(a.source, a.out, dtype_of(a.dtype), {*a.experts, a.top_k});
  else if (folder) export_model(a.source, a.out, dtype_of(a.dtype));
  else import_llama2c(a.source, llama2c_tokenizer(a.source, a.tokenizer), a.out);
  if (!folder && a.tokenizer.empty())
    log::warn("{}: the folder has no tokenizer, which generate and eval need: put a tokenizer.json into it, or import again "
              "with --tokenizer FILE (llama2.c's tokenizer.bin or a tokenizer.json)", a.out);
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
  return {"import", "a Hugging Face folder or a llama2.c file, checked, as a folder of ours",
          {{"SRC", &a->source, "a Hugging Face folder, or model.bin of llama2.c, version 0", {.required = true}},
           {"--out", &a->out, "folder to make", {.required = true}},
           {"--tokenizer", &a->tokenizer, "of a llama2.c file: its .bin or a tokenizer.json"},
           {"--dtype", &a->dtype, "of a folder's weights: stored, fp32, bf16 or fp16",
            {.shows_default = true, .words = {"stored", "fp32", "bf16", "fp16"}}},
           {"--upcycle", &a->experts, "make a model with so many experts, each a copy of the dense feed-forward layer"},
           {"--top-k", &a->top_k, "experts that a token passes, with --upcycle",
            {.shows_default = true, .needs = "--upcycle"}}},
          [a](const CommandContext& context) { return import_folder_or_file(context, *a); }};
}

Command export_command() {
  auto a = std::make_shared<ExportArguments>();
  return {"export", "weights and tokenizer of a checkpoint as a Hugging Face folder",
          {{"CKPT", &a->path, kModelPath, {.required = true}},
           {"--out", &a->out, "folder to make", {.required = true}},
           {"--dtype", &a->dtype, "fp32, bf16, fp16, or as stored",
            {.shows_default = true, .words = {"fp32", "bf16", "fp16", "stored"}}}},
          [a](const CommandContext& context) { return export_folder(context, *a); }};
}

}  // namespace megalith
