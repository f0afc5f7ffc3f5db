#include "text/sentencepiece_file.h"

#include <cmath>
#include <cstring>
#include <unordered_set>

#include "base/error.h"
#include "text/token_model.h"

namespace megalith {
namespace {

// Walks the fields of a protocol buffer message.
class Message {
 public:
  struct Field {
    uint32_t number = 0;
    uint64_t value = 0;      // of a varint, or the bits of a fixed number
    std::string_view bytes;  // of a string, bytes or message
    bool is_bytes = false;
  };

  Message(std::string_view bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  bool next(Field& field) {
    if (bytes_.empty()) return false;
    uint64_t tag = varint();
    field = {static_cast<uint32_t>(tag >> 3)};
    if (tag >> 3 == 0 || tag >> 3 > 0x1FFFFFFF) foreign();
    switch (tag & 7) {
      case 0:
        field.value = varint();
        break;
      case 1:
        field.value = fixed<uint64_t>();
        break;
      case 2:
        field.bytes = take(varint());
        field.is_bytes = true;
        break;
      case 5:
        field.value = fixed<uint32_t>();
        break;
      default:
        foreign();
    }
    return true;
  }
  [[noreturn]] void foreign() const {
    throw UserError({where_, "", "a SentencePiece model", "something else, or a truncated file", ""});
  }

 private:
  std::string_view take(uint64_t size) {
    if (size > bytes_.size()) foreign();
    std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  template <class T>
  T fixed() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    foreign();
  }

  std::string_view bytes_;
  const std::string& where_;
};

class Reader {
 public:
  Reader(const std::string& where) : where_(where) {}

  SentencePieceFile read(std::string_view bytes) {
    for_each(bytes, [&](const Message::Field& field) {
      if (field.number == 1) read_piece(need_bytes(field));
      if (field.number == 2) {
        has_trainer_ = true;
        read_trainer(need_bytes(field));
      }
      if (field.number == 3) read_normalizer(need_bytes(field));
      if (field.number == 5) read_denormalizer(need_bytes(field));
    });
    check();
    return std::move(file_);
  }

 private:
  template <class Fn>
  void for_each(std::string_view bytes, Fn fn) {
    Message message(bytes, where_);
    for (Message::Field field; message.next(field);) fn(field);
  }
  std::string_view need_bytes(const Message::Field& field) {
    if (!field.is_bytes) Message({}, where_).foreign();
    return field.bytes;
  }
  [[noreturn]] void refuse(const std::string& key, const std::string& expected, const std::string& got) {
    throw UserError({where_, key, expected, got, "this kind of SentencePiece model is not supported"});
  }

  void read_piece(std::string_view bytes) {
    SentencePieceFile::Piece piece;
    for_each(bytes, [&](const Message::Field& field) {
      if (field.number == 1) piece.text = need_bytes(field);
      if (field.number == 2) {
        auto bits = static_cast<uint32_t>(field.value);
        std::memcpy(&piece.score, &bits, sizeof bits);
      }
      if (field.number == 3) {
        if (field.value < 1 || field.value > 6) Message({}, where_).foreign();
        piece.type = static_cast<SentencePieceFile::Type>(field.value);
      }
    });
    file_.pieces.push_back(std::move(piece));
  }
  void read_trainer(std::string_view bytes) {
    for_each(bytes, [&](const Message::Field& field) {
      switch (field.number) {
        case 3:
          if (field.value != 1 && field.value != 2)
            refuse("model_type", "unigram or BPE",
                   field.value == 3   ? "word"
                   : field.value == 4 ? "char"
                                      : std::to_string(field.value));
          file_.kind = static_cast<SentencePieceFile::Kind>(field.value);
          break;
        case 24:
          if (field.value) refuse("treat_whitespace_as_suffix", "false", "true");
          break;
        case 35:
          file_.byte_fallback = field.value != 0;
          break;
        case 44:
          file_.unknown_text = need_bytes(field);
          break;
        case 46:
          file_.begin_piece = need_bytes(field);
          break;
        case 47:
          file_.end_piece = need_bytes(field);
          break;
        case 48:
          file_.pad_piece = need_bytes(field);
          break;
        default:
          break;
      }
    });
  }
  void read_normalizer(std::string_view bytes) {
    for_each(bytes, [&](const Message::Field& field) {
      if (field.number == 2) file_.charsmap = need_bytes(field);
      if (field.number == 3) file_.prefix_space = field.value != 0;
      if (field.number == 4) file_.remove_extra_spaces = field.value != 0;
      if (field.number == 5 && field.value == 0) refuse("escape_whitespaces", "true", "false");
    });
  }
  void read_denormalizer(std::string_view bytes) {
    for_each(bytes, [&](const Message::Field& field) {
      if (field.number == 2 && !field.bytes.empty())
        refuse("denormalizer_spec", "no rewriting rules", "rewriting rules");
    });
  }
  void check() {
    // The pieces come first in the file, so a file that was cut off between two pieces has no trainer_spec.
    if (file_.pieces.empty() || !has_trainer_) Message({}, where_).foreign();
    if (static_cast<int64_t>(file_.pieces.size()) > kLargestVocab)
      throw UserError({where_, "pieces", fmt::format("at most {}", kLargestVocab),
                       std::to_string(file_.pieces.size()), ""});
    std::unordered_set<std::string_view> seen;
    int64_t unknown = 0;
    for (const auto& piece : file_.pieces) {
      if (piece.text.empty() || !seen.insert(piece.text).second)
        throw UserError({where_, "pieces", "pieces that are unique and not empty", '"' + piece.text + '"', ""});
      if (!std::isfinite(piece.score))
        throw UserError(
            {where_, "score of " + piece.text, "a finite number", fmt::format("{}", piece.score), ""});
      unknown += piece.type == SentencePieceFile::Type::unknown;
      if (piece.type == SentencePieceFile::Type::unused && file_.kind == SentencePieceFile::Kind::bpe)
        refuse("pieces", "no piece of type unused in a BPE model", '"' + piece.text + '"');
    }
    if (unknown != 1) throw UserError({where_, "pieces", "one piece of type unknown", std::to_string(unknown), ""});
  }

  const std::string& where_;
  SentencePieceFile file_;
  bool has_trainer_ = false;
};

}  // namespace

SentencePieceFile read_sentencepiece(std::string_view bytes, const std::string& where) {
  return Reader(where).read(bytes);
}

}  // namespace megalith
