#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "commands/commands.h"
#include "inference/embedder.h"
#include "inference/vector_file.h"
#include "text/json_records.h"
#include "text/lines.h"

namespace megalith {
namespace {

constexpr size_t kTextsAtOnce = 4096;

void add_texts(const std::string& file, const std::string& field, std::vector<std::string>& texts) {
  if (!is_json_name(file))
    return for_each_line(read_file(file), [&](std::string_view line, int64_t) { texts.emplace_back(line); });
  for_each_json_record(file, [&](const nlohmann::json& object, const std::string& where) {
    texts.push_back(text_in(object, field, where, "name the field with --field"));
  });
}

}  // namespace

CommandResult run_embed(const CommandContext& context, const EmbedArguments& a) {
  std::vector<std::string> texts;
  for (const std::string& file : a.files) add_texts(file, a.field, texts);
  if (texts.empty()) throw UserError({a.files.front(), "", "texts", "an empty file", ""});
  EmbeddingModel loaded = load_embedding_model(a.path);
  if (!loaded.form_is_known)
    log::info("{} does not say how it makes vectors: using the mean of the outputs", loaded.model.folder.string());
  Embedder embedder(loaded.model, loaded.form);
  VectorFile out(a.out, std::ssize(texts), embedder.width());
  for (size_t first = 0; first < texts.size(); first += kTextsAtOnce)
    out.append(embedder.embed(std::span(texts).subspan(first, std::min(kTextsAtOnce, texts.size() - first))));
  out.finish();
  if (embedder.cut_off() > 0)
    log::warn("{} of {} texts are longer than the model reads; their ends were cut off", embedder.cut_off(), texts.size());
  print(context, fmt::format("{}: {} vectors of {} numbers\n", a.out, texts.size(), embedder.width()));
  return {ExitCode::done, {{"file", a.out}, {"vectors", texts.size()}, {"width", embedder.width()}, {"cut_off", embedder.cut_off()}}};
}

}  // namespace megalith
