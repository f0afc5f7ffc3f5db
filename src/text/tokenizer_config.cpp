#include "text/tokenizer_config.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"

namespace megalith {

std::string tokenizer_config(const Tokenizer& tokenizer) {
  nlohmann::json config{{"tokenizer_class", "PreTrainedTokenizerFast"},
                        {"clean_up_tokenization_spaces", false}};
  auto name = [&](const char* field, std::optional<TokenId> id) {
    if (id) config[field] = tokenizer.token_of(*id);
  };
  auto first_of = [&](std::initializer_list<const char*> names) -> std::optional<TokenId> {
    for (const char* one : names)
      if (auto id = tokenizer.id_of(one)) return id;
    return std::nullopt;
  };
  name("eos_token", tokenizer.end_token());
  name("bos_token", tokenizer.begin_token());
  name("mask_token", tokenizer.mask_token());
  name("unk_token", first_of({"<unk>", "[UNK]"}));
  // Programs that pad need a token. Which one does not matter, because padding is masked.
  const std::optional<TokenId> pad = first_of({"<pad>", "[PAD]", "<|pad|>"});
  name("pad_token", pad ? pad : tokenizer.end_token());
  return print_json(config, 2) + "\n";
}

void throw_unknown_id(TokenId id, int64_t vocab_size) {
  throw UserError({"", "token id", fmt::format("0 to {} (the tokenizer's vocabulary)", vocab_size - 1),
                   std::to_string(id), "use the tokenizer that made these tokens"});
}

}  // namespace megalith
