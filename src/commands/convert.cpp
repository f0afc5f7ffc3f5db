#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/files.h"
#include "commands/commands.h"
#include "commands/loaded_model.h"
#include "text/llama2c.h"
#include "tools/export_model.h"
#include "tools/import_llama2c.h"
#include "tools/upcycle.h"

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

}  // namespace

LoadedModel load_with_tokenizer(const std::string& path) {
  LoadedModel model = load_model(path);
  if (!model.tokenizer)
    throw UserError({model.folder.string(), "tokenizer.json", "a tokenizer beside the weights", "none",
                     "copy the tokenizer that the model was trained with into the folder"});
  return model;
}

CommandResult run_import(const CommandContext& context, const ImportArguments& a) {
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
  else import_file(a.source, a.tokenizer, a.out);
  print(context, a.out + "\n");
  return {ExitCode::done, {{"folder", a.out}}};
}

CommandResult run_export(const CommandContext& context, const ExportArguments& a) {
  export_model(a.path, a.out, dtype_of(a.dtype));
  print(context, a.out + "\n");
  return {ExitCode::done, {{"folder", a.out}}};
}

}  // namespace megalith
