// Text to token ids and back, whatever family the tokenizer is of.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

using TokenId = int32_t;

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Ids of a text, without the post-processor's extra tokens unless asked for. Special tokens written in the
  // text become their ids. Thread-safe.
  virtual std::vector<TokenId> encode(std::string_view text, bool add_special = false) const = 0;
  // The same for text that goes on an earlier piece of one document: nothing marks its beginning as a word's.
  // Pieces must be cut as in safe_cut.h.
  virtual std::vector<TokenId> encode_continued(std::string_view text) const { return encode(text); }
  // Bytes of ids; skips special tokens unless asked to keep them. Ids beyond the vocabulary are a UserError.
  virtual std::string decode(std::span<const TokenId> ids, bool keep_special = false) const = 0;

  // One more than the largest id, added tokens included.
  virtual int64_t vocab_size() const = 0;
  virtual std::optional<TokenId> id_of(std::string_view token) const = 0;
  virtual std::string token_of(TokenId id) const = 0;  // as written in the file
  // Ends a document: <|endoftext|>, </s>, <|end_of_text|>, [SEP], ... the first that exists.
  virtual std::optional<TokenId> end_token() const = 0;
  virtual std::optional<TokenId> begin_token() const = 0;  // <s>, <|begin_of_text|>, [CLS]
  virtual std::optional<TokenId> mask_token() const = 0;   // [MASK], <mask>, <|mask|>
  virtual bool is_special(TokenId id) const = 0;
  // False for pieces that continue a word ("##ing", or no leading space marker): whole-word masking.
  virtual bool starts_word(TokenId id) const = 0;
  // The file(s) to copy into a checkpoint, as name -> content; tokenizer.json at least.
  virtual std::vector<std::pair<std::string, std::string>> files() const = 0;

 protected:
  Tokenizer() = default;
  Tokenizer(const Tokenizer&) = default;
  Tokenizer& operator=(const Tokenizer&) = default;
};

// A tokenizer.json, a SentencePiece .model, a rank file of tiktoken's, GPT-2's vocab.json with its merges.txt
// (or encoder.json with vocab.bpe), a WordPiece vocab.txt, or a folder that holds one. A component we do not
// know is a UserError that names it.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& path);
// Of a model's folder; null where it holds none.
std::unique_ptr<Tokenizer> tokenizer_of_folder(const std::filesystem::path& folder);
// `other_files` are what files() hands on besides tokenizer.json; none: a tokenizer_config.json is made.
std::unique_ptr<Tokenizer> parse_tokenizer_json(
    std::string_view json, const std::string& where,
    std::vector<std::pair<std::string, std::string>> other_files = {});

}  // namespace megalith
