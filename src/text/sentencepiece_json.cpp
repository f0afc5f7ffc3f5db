// Converts a SentencePiece file to a tokenizer.json.
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "text/base64.h"
#include "text/charsmap.h"
#include "text/score_merges.h"
#include "text/sentencepiece_file.h"
#include "text/tokenizer_json.h"

namespace megalith {
namespace {

using nlohmann::json;
using File = SentencePieceFile;

TokenId unknown_id(const File& file) {
  for (size_t id = 0;; id++)
    if (file.pieces[id].type == File::Type::unknown) return static_cast<TokenId>(id);
}

json unigram_json(const File& file) {
  json vocab = json::array();
  for (const auto& piece : file.pieces)
    vocab.push_back(json::array({piece.text, static_cast<double>(piece.score)}));
  return {{"type", "Unigram"},
          {"unk_id", unknown_id(file)},
          {"vocab", vocab},
          {"byte_fallback", file.byte_fallback}};
}

json bpe_model_json(const File& file) {
  std::vector<std::string> names, mergeable;
  std::vector<float> scores;
  json vocab = json::object();
  for (size_t id = 0; id < file.pieces.size(); id++) {
    const auto& piece = file.pieces[id];
    vocab[piece.text] = id;
    names.push_back(piece.text);
    scores.push_back(piece.score);
    mergeable.push_back(piece.type == File::Type::normal ? piece.text : "");
  }
  json model = bpe_json(vocab, merges_json(merges_by_score(mergeable, scores), names));
  model["unk_token"] = names[static_cast<size_t>(unknown_id(file))];
  model["fuse_unk"] = true;
  model["byte_fallback"] = file.byte_fallback;
  return model;
}

// Adds a step before Hugging Face's Precompiled, so that "\r\n" becomes the same as in SentencePiece. Precompiled
// replaces a whole grapheme cluster by the rule that matches its beginning. "\r\n" is one cluster, so its line feed
// would be lost. This step applies the rule of "\r" first, which separates the two characters.
void push_carriage_return(json& steps, const Charsmap& rules) {
  auto both = rules.longest("\r\n");
  if (!both) return;
  std::string content = both->length == 1 ? std::string(both->result) + "\n" : std::string(both->result);
  steps.push_back({{"type", "Replace"}, {"pattern", {{"String", "\r\n"}}}, {"content", content}});
}

}  // namespace

std::string sentencepiece_json(const File& file, std::string_view bytes) {
  const bool bpe = file.kind == File::Kind::bpe;
  json model = bpe ? bpe_model_json(file) : unigram_json(file);
  model["sentencepiece"] = to_base64(bytes);
  json added = json::array();
  for (size_t id = 0; id < file.pieces.size(); id++) {
    const auto& piece = file.pieces[id];
    bool special = piece.type == File::Type::control || piece.type == File::Type::unknown;
    if (special || piece.type == File::Type::user_defined)
      added.push_back(added_token_json(static_cast<TokenId>(id), piece.text, special));
  }
  json whole = tokenizer_file_json(model, added);

  json steps = json::array();
  if (!file.charsmap.empty()) {
    push_carriage_return(steps, Charsmap(file.charsmap, "the model"));
    steps.push_back({{"type", "Precompiled"}, {"precompiled_charsmap", to_base64(file.charsmap)}});
  }
  if (file.remove_extra_spaces) {
    steps.push_back({{"type", "Replace"}, {"pattern", {{"Regex", "\\A +| +\\z"}}}, {"content", ""}});
    steps.push_back({{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", " "}});
  }
  if (file.prefix_space) steps.push_back({{"type", "Prepend"}, {"prepend", "\u2581"}});
  steps.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}});
  whole["normalizer"] = {{"type", "Sequence"}, {"normalizers", steps}};
  whole["decoder"] = marked_text_decoder_json(file.prefix_space);
  return print_any_json(whole);
}

}  // namespace megalith
