#include "text/llama2c.h"

#include <nlohmann/json.hpp>

#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "text/score_merges.h"
#include "text/tokenizer_json.h"

namespace megalith {
namespace {

using nlohmann::json;

struct Piece {
  std::string text;
  float score;
};

std::vector<Piece> read_pieces(std::string_view bytes, const std::string& where) {
  auto take = [&](void* to, size_t size) {
    if (bytes.size() < size)
      throw UserError({where, "tokenizer", "complete pieces up to the end of the file", "a truncated piece", ""});
    std::memcpy(to, bytes.data(), size);
    bytes.remove_prefix(size);
  };
  int32_t longest = 0;
  take(&longest, sizeof longest);
  std::vector<Piece> pieces;
  while (!bytes.empty()) {
    Piece piece;
    int32_t length = 0;
    take(&piece.score, sizeof piece.score);
    take(&length, sizeof length);
    if (length < 0 || length > longest)
      throw UserError({where, fmt::format("piece {}", pieces.size()),
                       fmt::format("a length up to {}", longest), std::to_string(length),
                       "check whether this is a tokenizer.bin of llama2.c"});
    piece.text.resize(static_cast<size_t>(length));
    take(piece.text.data(), piece.text.size());
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

// The file has spaces in place of the vocabulary's marks, and newlines around <s> and </s>.
std::string token_name(const Piece& piece, size_t id) {
  if (id == 1) return "<s>";
  if (id == 2) return "</s>";
  std::string name;
  for (char c : piece.text) name += c == ' ' ? std::string("\u2581") : std::string(1, c);
  return name;
}

}  // namespace

std::string tokenizer_from_llama2c(std::string_view bytes, int64_t vocab, const std::string& where) {
  std::vector<Piece> pieces = read_pieces(bytes, where);
  if (static_cast<int64_t>(pieces.size()) != vocab)
    throw UserError({where, "pieces", fmt::format("{} (the model's vocabulary)", vocab),
                     std::to_string(pieces.size()), "use the tokenizer of this model"});
  if (pieces.size() < 259)
    throw UserError(
        {where, "pieces", "at least 259 (<unk>, <s>, </s> and 256 bytes)", std::to_string(pieces.size()), ""});
  std::vector<std::string> names;
  std::vector<float> scores;
  json ids = json::object();
  for (size_t id = 0; id < pieces.size(); id++) {
    names.push_back(token_name(pieces[id], id));
    scores.push_back(pieces[id].score);
    if (!ids.emplace(names[id], id).second)
      throw UserError(
          {where, fmt::format("piece {}", id), "a piece that occurs once", '"' + names[id] + "\" twice", ""});
  }
  json added = json::array();
  for (int id = 0; id < 3; id++) added.push_back(added_token_json(id, names[static_cast<size_t>(id)]));
  json begin{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}};
  json text{{"Sequence", {{"id", "A"}, {"type_id", 0}}}}, second{{"Sequence", {{"id", "B"}, {"type_id", 1}}}};
  json second_begin{{"SpecialToken", {{"id", "<s>"}, {"type_id", 1}}}};
  json model = bpe_json(ids, merges_json(merges_by_score(names, scores), names));
  model["unk_token"] = names[0];
  model["fuse_unk"] = model["byte_fallback"] = true;
  json file = tokenizer_file_json(model, added);
  file["normalizer"] = {
      {"type", "Sequence"},
      {"normalizers",
       json::array({json{{"type", "Prepend"}, {"prepend", "\u2581"}},
                    json{{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}}})}};
  file["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", json::array({begin, text})},
      {"pair", json::array({begin, text, second_begin, second})},
      {"special_tokens",
       {{"<s>", {{"id", "<s>"}, {"ids", json::array({1})}, {"tokens", json::array({"<s>"})}}}}}};
  file["decoder"] = marked_text_decoder_json(true);
  return print_json(file);
}

}  // namespace megalith
