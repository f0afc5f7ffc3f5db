#include "text/gpt2_files.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "text/lines.h"
#include "text/tokenizer_json.h"

namespace megalith {

std::string tokenizer_from_gpt2_files(std::string_view vocab_text, const std::string& vocab_file,
                                      std::string_view merges_text, const std::string& merges_file) {
  using nlohmann::json;
  json vocab = parse_json(vocab_text, vocab_file);
  if (!vocab.is_object() || vocab.empty())
    throw UserError({vocab_file, "", "an object that maps tokens to ids", vocab.type_name(), ""});
  if (vocab.contains("a</w>"))
    throw UserError({vocab_file, "vocabulary", "a byte-level vocabulary like GPT-2's", "tokens that end with </w>",
                     "this kind of BPE is not supported"});
  json merges = json::array();
  for_each_line(merges_text, [&](std::string_view line, int64_t line_number) {
    if (line.empty() || (line_number == 1 && line.starts_with("#version"))) return;
    size_t space = line.find(' ');
    if (space == 0 || space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos)
      throw UserError({fmt::format("{}:{}", merges_file, line_number), "merge",
                       "two tokens separated by a space", '"' + std::string(line) + '"', ""});
    for (std::string_view token : {line.substr(0, space), line.substr(space + 1)})
      if (!vocab.contains(token))
        throw UserError({fmt::format("{}:{}", merges_file, line_number), "merge", "tokens of " + vocab_file,
                         '"' + std::string(token) + '"', "use two files of the same tokenizer"});
    merges.push_back({line.substr(0, space), line.substr(space + 1)});
  });
  json added = json::array();
  for (const char* name : {"<|endoftext|>", "<s>", "</s>", "<pad>", "<unk>", "<mask>"})
    if (vocab.contains(name) && vocab[name].is_number_integer())
      added.push_back(added_token_json(vocab[name].get<TokenId>(), name));
  json file = tokenizer_file_json(bpe_json(std::move(vocab), std::move(merges)), added);
  file["pre_tokenizer"] = byte_level_json(false);
  file["decoder"] = byte_level_json(true);
  return print_json(file);
}

}  // namespace megalith
