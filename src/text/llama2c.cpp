#include "text/llama2c.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "text/utf8.h"

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
      throw UserError({where, "tokenizer", "whole pieces up to the end of the file", "a torn one", ""});
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
                       "is this a tokenizer.bin of llama2.c?"});
    piece.text.resize(static_cast<size_t>(length));
    take(piece.text.data(), piece.text.size());
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

// The file has spaces where the vocabulary has marks, and newlines around <s> and </s>.
std::string token_name(const Piece& piece, size_t id) {
  if (id == 1) return "<s>";
  if (id == 2) return "</s>";
  std::string name;
  for (char c : piece.text) name += c == ' ' ? std::string("\u2581") : std::string(1, c);
  return name;
}

struct Merge {
  float score;
  int32_t left, right;  // ids: among equals, the earlier pieces first
  std::string left_name, right_name;
};

// SentencePiece joins the neighbours whose joint piece scores best; so every way to make a piece of two is a
// merge, as early as the piece's score.
json merges_by_score(const std::vector<std::string>& names, const std::vector<Piece>& pieces) {
  std::unordered_map<std::string, int32_t> ids;
  for (size_t id = 0; id < names.size(); id++) ids.emplace(names[id], static_cast<int32_t>(id));
  std::vector<Merge> merges;
  for (size_t id = 0; id < names.size(); id++) {
    const std::string& name = names[id];
    for (size_t cut = 0; cut < name.size();) {
      cut += code_point_at(name, cut).bytes;
      auto left = ids.find(name.substr(0, cut)), right = ids.find(name.substr(cut));
      if (cut < name.size() && left != ids.end() && right != ids.end())
        merges.push_back({pieces[id].score, left->second, right->second, left->first, right->first});
    }
  }
  std::stable_sort(merges.begin(), merges.end(), [](const Merge& a, const Merge& b) {
    return std::tuple(-a.score, a.left, a.right) < std::tuple(-b.score, b.left, b.right);
  });
  json list = json::array();
  for (const Merge& merge : merges) list.push_back({merge.left_name, merge.right_name});
  return list;
}

}  // namespace

std::string tokenizer_from_llama2c(std::string_view bytes, int64_t vocab, const std::string& where) {
  std::vector<Piece> pieces = read_pieces(bytes, where);
  if (static_cast<int64_t>(pieces.size()) != vocab)
    throw UserError({where, "pieces", fmt::format("{}, the model's vocabulary", vocab),
                     std::to_string(pieces.size()), "the tokenizer belongs to another model"});
  if (pieces.size() < 259)
    throw UserError(
        {where, "pieces", "<unk>, <s>, </s> and 256 bytes at least", std::to_string(pieces.size()), ""});
  std::vector<std::string> names;
  json ids = json::object();
  for (size_t id = 0; id < pieces.size(); id++) {
    names.push_back(token_name(pieces[id], id));
    if (!ids.emplace(names[id], id).second)
      throw UserError(
          {where, fmt::format("piece {}", id), "every piece once", '"' + names[id] + "\" again", ""});
  }
  json added = json::array();
  for (int id = 0; id < 3; id++)
    added.push_back({{"id", id},
                     {"content", names[static_cast<size_t>(id)]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  json mark{{"String", "\u2581"}}, space{{"String", " "}};
  json begin{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}};
  json text{{"Sequence", {{"id", "A"}, {"type_id", 0}}}}, second{{"Sequence", {{"id", "B"}, {"type_id", 1}}}};
  json second_begin{{"SpecialToken", {{"id", "<s>"}, {"type_id", 1}}}};
  json file{
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added},
      {"normalizer",
       {{"type", "Sequence"},
        {"normalizers",
         json::array({json{{"type", "Prepend"}, {"prepend", "\u2581"}},
                      json{{"type", "Replace"}, {"pattern", space}, {"content", "\u2581"}}})}}},
      {"pre_tokenizer", nullptr},
      {"post_processor",
       {{"type", "TemplateProcessing"},
        {"single", json::array({begin, text})},
        {"pair", json::array({begin, text, second_begin, second})},
        {"special_tokens",
         {{"<s>", {{"id", "<s>"}, {"ids", json::array({1})}, {"tokens", json::array({"<s>"})}}}}}}},
      {"decoder",
       {{"type", "Sequence"},
        {"decoders", json::array({json{{"type", "Replace"}, {"pattern", mark}, {"content", " "}},
                                  json{{"type", "ByteFallback"}}, json{{"type", "Fuse"}},
                                  json{{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}})}}},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", names[0]},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", true},
        {"byte_fallback", true},
        {"ignore_merges", false},
        {"vocab", ids},
        {"merges", merges_by_score(names, pieces)}}}};
  return file.dump();
}

}  // namespace megalith
