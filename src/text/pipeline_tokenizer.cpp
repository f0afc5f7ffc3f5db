#include "text/pipeline_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/byte_alphabet.h"
#include "text/component.h"
#include "text/tokenizer_config.h"

namespace megalith {

using nlohmann::json;

PipelineTokenizer::PipelineTokenizer(std::string text, const json& file, const std::string& where)
    : json_(std::move(text)) {
  static const json kNull;
  auto part = [&](const char* name) {
    auto found = file.find(name);
    return Component{found == file.end() ? kNull : *found, where, name};
  };
  Component model = part("model");
  if (!model.json.is_object())
    throw UserError(
        {where, "model", "a tokenizer.json with a model", model.type(), "check whether this is the file of a tokenizer"});

  PreTokenizerTraits traits;
  normalizer_ = read_normalizer(part("normalizer"));
  pre_tokenizer_ = read_pre_tokenizer(part("pre_tokenizer"), traits);
  ids_ = read_vocab(model);
  model_ = read_model(model, ids_, traits);
  around_ = read_post_processor(part("post_processor"));
  decoder_ = read_decoder(part("decoder"));

  auto added = read_added_tokens(part("added_tokens"));
  std::vector<std::pair<std::string, AddedToken>> raw, normalized;
  for (const AddedToken& token : added) {
    std::string searched = token.content;
    if (token.normalized && normalizer_) normalizer_->apply(searched, true);
    (token.normalized ? normalized : raw).emplace_back(std::move(searched), token);
  }
  raw_added_ = std::make_unique<AddedTokenSplitter>(std::move(raw));
  normalized_added_ = std::make_unique<AddedTokenSplitter>(std::move(normalized));

  name_tokens(model, added, traits.byte_level);
  for (TokenId id : around_.before) check(id);
  for (TokenId id : around_.after) check(id);
  end_ = first_of({"<|endoftext|>", "</s>", "<|end_of_text|>", "<eos>", "<|im_end|>", "[SEP]", "[EOS]"});
  begin_ = first_of({"<s>", "<|begin_of_text|>", "<bos>", "[CLS]", "[BOS]"});
  mask_ = first_of({"[MASK]", "<mask>", "<|mask|>"});
}

void PipelineTokenizer::name_tokens(const Component& model, const std::vector<AddedToken>& added,
                                    bool byte_level) {
  auto starts_word = [&](std::string_view name) {
    if (model.type() == "WordPiece")
      return !name.starts_with(model.get<std::string>("continuing_subword_prefix", "##"));
    if (!byte_level) return name.starts_with("\u2581");
    auto bytes = from_byte_alphabet(name);
    return bytes && !bytes->empty() && ((*bytes)[0] == ' ' || ((*bytes)[0] >= 9 && (*bytes)[0] <= 13));
  };
  auto set = [&](TokenId id, const std::string& name) -> Token& {
    if (tokens_.size() <= static_cast<size_t>(id)) tokens_.resize(static_cast<size_t>(id) + 1);
    Token& token = tokens_[static_cast<size_t>(id)];
    token.name = name;
    return token;
  };
  for (const auto& [name, id] : ids_) set(id, name).starts_word = starts_word(name);
  for (const AddedToken& token : added) {
    ids_[token.content] = token.id;
    Token& named = set(token.id, token.content);
    named.special = token.special;
    named.starts_word = true;
  }
}

std::optional<TokenId> PipelineTokenizer::first_of(std::initializer_list<const char*> names) const {
  for (const char* name : names)
    if (auto id = id_of(name)) return id;
  return std::nullopt;
}

size_t PipelineTokenizer::check(TokenId id) const {
  if (id < 0 || id >= vocab_size()) throw_unknown_id(id, vocab_size());
  return static_cast<size_t>(id);
}

std::vector<TokenId> PipelineTokenizer::encode(std::string_view text, bool add_special) const {
  std::vector<TokenId> ids;
  if (add_special) ids = around_.before;
  encode_into(text, false, ids);
  if (add_special) ids.insert(ids.end(), around_.after.begin(), around_.after.end());
  return ids;
}

std::vector<TokenId> PipelineTokenizer::encode_continued(std::string_view text) const {
  std::vector<TokenId> ids;
  encode_into(text, true, ids);
  return ids;
}

void PipelineTokenizer::encode_into(std::string_view text, bool continues, std::vector<TokenId>& ids) const {
  ids.reserve(ids.size() + text.size() / 4);
  // Calls plain(part, offset) for the text between added tokens, and appends the ids of the added tokens.
  auto cut_out = [&](const AddedTokenSplitter& splitter, std::string_view whole, auto plain) {
    for (size_t at = 0; at < whole.size();) {
      auto span = splitter.next(whole, at);
      if (span.begin > at) plain(whole.substr(at, span.begin - at), at);
      if (span.token >= 0) ids.push_back(span.token);
      at = span.end;
    }
  };
  cut_out(*raw_added_, text, [&](std::string_view piece, size_t piece_at) {
    std::string normalized;
    if (normalizer_) {
      normalized = piece;
      normalizer_->apply(normalized, !(continues && piece_at == 0));
      piece = normalized;
    }
    cut_out(*normalized_added_, piece, [&](std::string_view part, size_t part_at) {
      bool at_front = piece_at == 0 && part_at == 0;
      encode_plain(part, {.begins = at_front && !continues, .continues = at_front && continues}, ids);
    });
  });
}

void PipelineTokenizer::encode_plain(std::string_view text, PreTokenizer::Place place,
                                     std::vector<TokenId>& ids) const {
  struct ToModel final : PreTokenizer::Sink {
    const TokenModel& model;
    std::vector<TokenId>& ids;
    ToModel(const TokenModel& m, std::vector<TokenId>& i) : model(m), ids(i) {}
    void word(std::string_view text) override { model.encode_word(text, ids); }
  } sink(*model_, ids);
  if (pre_tokenizer_)
    pre_tokenizer_->split(text, place, sink);
  else
    sink.word(text);
}

std::string PipelineTokenizer::decode(std::span<const TokenId> ids, bool keep_special) const {
  std::vector<std::string> pieces;
  for (TokenId id : ids) {
    const Token& token = tokens_[check(id)];
    if (keep_special || !token.special) pieces.push_back(token.name);
  }
  std::string text;
  if (decoder_) {
    decoder_->apply(pieces);
    for (const auto& piece : pieces) text += piece;
  } else {
    for (const auto& piece : pieces) (text += text.empty() ? "" : " ") += piece;
  }
  return text;
}

std::optional<TokenId> PipelineTokenizer::id_of(std::string_view token) const {
  auto found = ids_.find(token);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::string PipelineTokenizer::token_of(TokenId id) const {
  return tokens_[check(id)].name;
}

std::vector<std::pair<std::string, std::string>> PipelineTokenizer::files() const {
  std::vector<std::pair<std::string, std::string>> files{{"tokenizer.json", json_}};
  if (!other_files_.empty()) {
    files.insert(files.end(), other_files_.begin(), other_files_.end());
    return files;
  }
  files.emplace_back("tokenizer_config.json", tokenizer_config(*this));
  return files;
}

}  // namespace megalith
