#include "text/sentencepiece_tokenizer.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "text/bpe_model.h"
#include "text/tokenizer_config.h"
#include "text/unigram_cut.h"
#include "text/utf8.h"

namespace megalith {
namespace {

constexpr std::string_view kMark = "\u2581";  // stands for a space

}  // namespace

SentencePieceTokenizer::SentencePieceTokenizer(std::string bytes, const std::string& where)
    : bytes_(std::move(bytes)), file_(read_sentencepiece(bytes_, where)), rules_(file_.charsmap, where) {
  std::vector<std::pair<std::string, int32_t>> matched, user_defined;
  lowest_ = std::numeric_limits<float>::max();
  for (size_t i = 0; i < file_.pieces.size(); i++) {
    const auto& piece = file_.pieces[i];
    auto id = static_cast<TokenId>(i);
    ids_.emplace(piece.text, id);
    if (piece.type == Type::unknown) unknown_ = id;
    if (piece.type == Type::normal) lowest_ = std::min(lowest_, piece.score);
    if (piece.type == Type::user_defined) user_defined.emplace_back(piece.text, id);
    if (piece.type == Type::normal || piece.type == Type::user_defined) matched.emplace_back(piece.text, id);
  }
  for (size_t b = 0; b < 256; b++) {
    auto found = ids_.find(fmt::format("<0x{:02X}>", b));
    bool there = found != ids_.end() && file_.pieces[static_cast<size_t>(found->second)].type == Type::byte;
    if (!there && file_.byte_fallback)
      throw UserError({where, "pieces", fmt::format("a piece <0x{:02X}>, because byte_fallback is on", b),
                       "no such piece", ""});
    byte_ids_[b] = there ? found->second : unknown_;
  }
  has_user_defined_ = !user_defined.empty();
  user_defined_ = ByteTrie(std::move(user_defined));
  if (file_.kind == SentencePieceFile::Kind::unigram)
    pieces_ = ByteTrie(std::move(matched));
  else
    bpe_ = bpe_of_sentencepiece(file_);
}

const SentencePieceFile::Piece& SentencePieceTokenizer::piece(TokenId id) const {
  if (id < 0 || id >= vocab_size()) throw_unknown_id(id, vocab_size());
  return file_.pieces[static_cast<size_t>(id)];
}

std::optional<TokenId> SentencePieceTokenizer::id_of(std::string_view token) const {
  auto found = ids_.find(token);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<TokenId> SentencePieceTokenizer::mask_token() const {
  for (const char* name : {"[MASK]", "<mask>", "<|mask|>"})
    if (auto id = id_of(name)) return id;
  return std::nullopt;
}

bool SentencePieceTokenizer::starts_word(TokenId id) const {
  const auto& named = piece(id);
  return named.type != Type::normal && named.type != Type::byte ? true : named.text.starts_with(kMark);
}

std::vector<std::pair<std::string, std::string>> SentencePieceTokenizer::files() const {
  return {{"tokenizer.json", sentencepiece_json(file_, bytes_)},
          {"tokenizer_config.json", tokenizer_config(*this)}};
}

std::vector<TokenId> SentencePieceTokenizer::encode(std::string_view text, bool) const {
  std::vector<TokenId> ids;
  bpe_ ? encode_bpe(normalize(text, false), ids) : encode_unigram(normalize(text, false), ids);
  return ids;
}

std::vector<TokenId> SentencePieceTokenizer::encode_continued(std::string_view text) const {
  std::vector<TokenId> ids;
  bpe_ ? encode_bpe(normalize(text, true), ids) : encode_unigram(normalize(text, true), ids);
  return ids;
}

size_t SentencePieceTokenizer::user_defined_prefix(std::string_view text) const {
  size_t longest = 0;
  if (!has_user_defined_) return longest;
  int32_t node = ByteTrie::kRoot;
  for (size_t end = 0; end < text.size();) {
    node = user_defined_.step(node, text[end++]);
    if (node == ByteTrie::kNone) break;
    if (user_defined_.value(node) != ByteTrie::kNone) longest = end;
  }
  return longest;
}

Charsmap::Rule SentencePieceTokenizer::normalized_prefix(std::string_view text) const {
  if (size_t whole = user_defined_prefix(text)) return {whole, text.substr(0, whole)};
  if (auto rule = rules_.longest(text)) return *rule;
  CodePoint point = code_point_at(text, 0);
  if (!point.valid()) return {1, "\uFFFD"};
  return {point.bytes, text.substr(0, point.bytes)};
}

std::string SentencePieceTokenizer::normalize(std::string_view text, bool continues) const {
  const bool trim = file_.remove_extra_spaces;
  while (trim && !continues && !text.empty()) {
    auto [length, result] = normalized_prefix(text);
    if (result != " ") break;
    text.remove_prefix(length);
  }
  std::string out;
  if (text.empty()) return out;
  out.reserve(text.size() + text.size() / 3 + kMark.size());
  if (file_.prefix_space && !continues) out += kMark;
  bool after_space = trim && !continues;
  while (!text.empty()) {
    auto [length, result] = normalized_prefix(text);
    while (after_space && result.starts_with(' ')) result.remove_prefix(1);
    if (!result.empty()) {
      for (char c : result) c == ' ' ? out += kMark : out += c;
      after_space = trim && result.ends_with(' ');
    }
    text.remove_prefix(length);
  }
  while (trim && out.ends_with(kMark)) out.resize(out.size() - kMark.size());
  return out;
}

void SentencePieceTokenizer::add_unknown(std::string_view text, bool& after_unknown,
                                         std::vector<TokenId>& ids) const {
  if (file_.byte_fallback)
    for (char c : text) ids.push_back(byte_ids_[static_cast<unsigned char>(c)]);
  else if (!after_unknown)  // neighbouring unknown characters become one token
    ids.push_back(unknown_);
  after_unknown = true;
}

void SentencePieceTokenizer::encode_unigram(std::string_view normalized, std::vector<TokenId>& ids) const {
  constexpr float kUnknownPenalty = 10, kLargestSum = 100'000;
  thread_local std::vector<UnigramPiece> cut;  // last piece first
  auto score = [&](int32_t id, size_t bytes) {
    const auto& piece = file_.pieces[static_cast<size_t>(id)];
    if (piece.type != Type::user_defined) return piece.score;
    // User-defined pieces have a higher score than all others. The formula is that of SentencePiece since 0.2.3.
    return static_cast<float>(0.1 * static_cast<double>(bytes - 1));
  };
  best_cut<float>(
      pieces_, normalized, lowest_ - kUnknownPenalty, kLargestSum, score, [](int32_t) { return true; }, cut);
  bool after_unknown = false;
  for (size_t i = cut.size(); i-- > 0;) {
    if (cut[i].id == UnigramPiece::kUnknown) {
      add_unknown(normalized.substr(cut[i].begin, cut[i].end - cut[i].begin), after_unknown, ids);
    } else {
      ids.push_back(cut[i].id);
      after_unknown = false;
    }
  }
}

void SentencePieceTokenizer::encode_bpe(std::string_view normalized, std::vector<TokenId>& ids) const {
  if (!has_user_defined_) return bpe_->encode_word(normalized, ids);
  size_t word = 0;
  auto flush = [&](size_t end) {
    if (word < end) bpe_->encode_word(normalized.substr(word, end - word), ids);
  };
  for (size_t at = 0; at < normalized.size();) {
    // a user-defined piece does not join with its neighbours
    if (size_t length = user_defined_prefix(normalized.substr(at))) {
      flush(at);
      ids.push_back(*id_of(normalized.substr(at, length)));
      word = at += length;
    } else {
      at += code_point_at(normalized, at).bytes;
    }
  }
  flush(normalized.size());
}

std::string SentencePieceTokenizer::decode(std::span<const TokenId> ids, bool keep_special) const {
  std::string text;
  bool at_beginning = true;
  for (TokenId id : ids) {
    const auto& named = piece(id);
    std::string_view rest = named.text;
    switch (named.type) {
      case Type::control:
        if (keep_special) text += rest;
        continue;
      case Type::unknown:
        text += file_.unknown_text;
        break;
      case Type::byte: {
        auto found = std::find(byte_ids_.begin(), byte_ids_.end(), id);
        text += static_cast<char>(found - byte_ids_.begin());
        break;
      }
      default:
        if (at_beginning && (file_.prefix_space || file_.remove_extra_spaces) && rest.starts_with(kMark)) {
          rest.remove_prefix(kMark.size());
          // encode() puts one space in front of a text, so decode() removes one. If encode() removes extra spaces, decode()
          // removes all spaces at the front.
          at_beginning = file_.remove_extra_spaces && rest.empty();
        } else {
          at_beginning = false;
        }
        for (size_t at = 0; at < rest.size();) {
          bool mark = rest.substr(at).starts_with(kMark);
          mark ? text += ' ' : text += rest[at];
          at += mark ? kMark.size() : 1;
        }
        continue;
    }
    at_beginning = false;
  }
  return text;
}

}  // namespace megalith
