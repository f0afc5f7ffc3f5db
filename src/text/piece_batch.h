// Groups pieces of documents into batches, so that a small document does not need a task of its own.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "text/corpus.h"

namespace megalith {

class PieceBatch {
 public:
  struct Piece {
    size_t begin, size;  // range in the batch's text
    bool first, last;    // the same as in DocumentPiece
  };

  void add(const DocumentPiece& piece) {
    pieces_.push_back({text_.size(), piece.text.size(), piece.first, piece.last});
    text_ += piece.text;
    bytes_read_ = piece.bytes_read;
    after_ = piece.after;
  }
  size_t size() const { return text_.size(); }
  const std::vector<Piece>& pieces() const { return pieces_; }
  std::string_view text(const Piece& piece) const {
    return std::string_view(text_).substr(piece.begin, piece.size);
  }
  int64_t bytes_read() const { return bytes_read_; }  // bytes of the files read up to the end of the last piece
  const TextPlace& after() const { return after_; }   // position after the last piece

 private:
  std::string text_;
  std::vector<Piece> pieces_;
  int64_t bytes_read_ = 0;
  TextPlace after_;
};

// Like for_each_piece, but in batches of at least half of `piece_bytes`; the last batch may be smaller.
inline void for_each_batch(const std::vector<std::filesystem::path>& files, const CorpusOptions& options,
                           const std::function<void(PieceBatch)>& fn, const TextPlace& from = {}) {
  PieceBatch batch;
  auto gather = [&](const DocumentPiece& piece) {
    batch.add(piece);
    if (static_cast<int64_t>(batch.size()) * 2 < options.piece_bytes) return;
    fn(std::move(batch));
    batch = {};
  };
  for_each_piece(files, options, gather, from);
  if (!batch.pieces().empty()) fn(std::move(batch));
}

}  // namespace megalith
