// A tokenizer built from the components of a tokenizer.json.
// Encoding: text -> added tokens cut out -> normalizer -> words -> model -> ids.
// Decoding: ids -> tokens -> decoder -> text.
#pragma once
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "text/added_tokens.h"
#include "text/decoder.h"
#include "text/normalizer.h"
#include "text/post_processor.h"
#include "text/pre_tokenizer.h"
#include "text/token_model.h"
#include "text/tokenizer.h"

namespace megalith {

class PipelineTokenizer final : public Tokenizer {
 public:
  // `text` is the content of the tokenizer.json, kept for files(). `file` is the same, parsed. Throws UserError, or an
  // exception of nlohmann-json if the structure of the file is wrong.
  PipelineTokenizer(std::string text, const nlohmann::json& file, const std::string& where);

  std::vector<TokenId> encode(std::string_view text, bool add_special) const override;
  std::vector<TokenId> encode_continued(std::string_view text) const override;
  std::string decode(std::span<const TokenId> ids, bool keep_special) const override;

  int64_t vocab_size() const override { return static_cast<int64_t>(tokens_.size()); }
  std::optional<TokenId> id_of(std::string_view token) const override;
  std::string token_of(TokenId id) const override;
  std::optional<TokenId> end_token() const override { return end_; }
  std::optional<TokenId> begin_token() const override { return begin_; }
  std::optional<TokenId> mask_token() const override { return mask_; }
  bool is_special(TokenId id) const override { return tokens_[check(id)].special; }
  bool starts_word(TokenId id) const override { return tokens_[check(id)].starts_word; }
  std::vector<std::pair<std::string, std::string>> files() const override;

  // Adds a file that files() returns besides tokenizer.json, such as the tokenizer_config.json of a Hugging Face
  // folder.
  void add_file(std::string name, std::string content) {
    other_files_.emplace_back(std::move(name), std::move(content));
  }

 private:
  struct Token {
    std::string name;  // as written in the file; empty if the id has no token
    bool special = false, starts_word = false;
  };

  size_t check(TokenId id) const;
  void encode_into(std::string_view text, bool continues, std::vector<TokenId>& ids) const;
  void encode_plain(std::string_view text, PreTokenizer::Place place, std::vector<TokenId>& ids) const;
  void name_tokens(const Component& model, const std::vector<AddedToken>& added, bool byte_level);
  std::optional<TokenId> first_of(std::initializer_list<const char*> names) const;

  std::string json_;
  std::vector<std::pair<std::string, std::string>> other_files_;
  StringToId ids_;
  std::vector<Token> tokens_;
  std::unique_ptr<AddedTokenSplitter> raw_added_, normalized_added_;
  std::unique_ptr<Normalizer> normalizer_;  // this and the next two may be null
  std::unique_ptr<PreTokenizer> pre_tokenizer_;
  std::unique_ptr<Decoder> decoder_;
  std::unique_ptr<TokenModel> model_;
  PostProcessor around_;
  std::optional<TokenId> end_, begin_, mask_;
};

}  // namespace megalith
