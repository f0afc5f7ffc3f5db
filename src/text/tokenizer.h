// Converts text to token ids and back; the interface of all kinds of tokenizers.
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

  // Returns the ids of a text. Adds the post-processor's extra tokens only if `add_special` is true. Special tokens
  // written in the text become their ids. Thread-safe.
  virtual std::vector<TokenId> encode(std::string_view text, bool add_special = false) const = 0;
  // The same for text that continues an earlier piece of the same document: its beginning is not marked as the
  // beginning of a word. Pieces must be cut as in safe_cut.h.
  virtual std::vector<TokenId> encode_continued(std::string_view text) const { return encode(text); }
  // Returns the text of ids as bytes. Skips special tokens unless `keep_special` is true. Throws UserError if an id is not
  // in the vocabulary.
  virtual std::string decode(std::span<const TokenId> ids, bool keep_special = false) const = 0;

  // Returns the largest id plus one, including added tokens.
  virtual int64_t vocab_size() const = 0;
  virtual std::optional<TokenId> id_of(std::string_view token) const = 0;
  virtual std::string token_of(TokenId id) const = 0;  // as written in the file
  // Returns the token that ends a document: the first of <|endoftext|>, </s>, <|end_of_text|>, [SEP], ... that exists.
  virtual std::optional<TokenId> end_token() const = 0;
  virtual std::optional<TokenId> begin_token() const = 0;  // <s>, <|begin_of_text|>, [CLS]
  virtual std::optional<TokenId> mask_token() const = 0;   // [MASK], <mask>, <|mask|>
  virtual bool is_special(TokenId id) const = 0;
  // False for pieces that continue a word ("##ing", or no leading space marker). Used by whole-word masking.
  virtual bool starts_word(TokenId id) const = 0;
  // Returns the files to copy into a checkpoint, as name -> content. Always contains tokenizer.json.
  virtual std::vector<std::pair<std::string, std::string>> files() const = 0;

 protected:
  Tokenizer() = default;
  Tokenizer(const Tokenizer&) = default;
  Tokenizer& operator=(const Tokenizer&) = default;
};

// Returns the file of a tokenizer. `path` is the file or its folder. Throws a UserError about `path` if no such file exists.
std::filesystem::path tokenizer_file(const std::filesystem::path& path);
// Loads a tokenizer.json, a SentencePiece .model, a rank file of tiktoken, GPT-2's vocab.json with its merges.txt (or
// encoder.json with vocab.bpe), a WordPiece vocab.txt, or a folder that contains one. Throws a UserError that names a
// component that we do not support.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& path);
// Loads the tokenizer of a model folder. Returns null if the folder has no tokenizer.
std::unique_ptr<Tokenizer> tokenizer_of_folder(const std::filesystem::path& folder);
// `other_files` are returned by files() besides tokenizer.json. If they are empty, files() makes a
// tokenizer_config.json.
std::unique_ptr<Tokenizer> parse_tokenizer_json(
    std::string_view json, const std::string& where,
    std::vector<std::pair<std::string, std::string>> other_files = {});

}  // namespace megalith
