// Text on disk as documents: files and globs, plain, gzip or zstd, running text or JSON lines, streamed in
// bounded memory.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

struct CorpusOptions {
  std::string text_field = "text";  // of JSON lines
  // Text files are one document each, unless one of these ends documents:
  std::string separator;          // a line with exactly this
  std::string separator_token;    // this text, wherever it stands; like the line it is no part of a document
  int64_t piece_bytes = 1 << 20;  // documents longer than about this arrive in pieces
};

// Files of `data.train` or `data.valid`: names as they are, patterns expanded and sorted, in the order given.
// A missing file, a folder, a pattern that matches nothing: UserError naming the entry.
std::vector<std::filesystem::path> expand_files(const std::vector<std::string>& entries);

// Where reading can go on in another process: what lies before has been given away.
struct TextPlace {
  int64_t file = 0;              // number in the list
  int64_t offset = 0;            // bytes of its text, decompressed
  int64_t line = 0;              // JSON lines: lines before it...
  int64_t line_given = 0;        // ... and bytes of the document in the line that begins there, given already
  int64_t documents = 0;         // of this file that ended before it
  bool inside_document = false;  // the text goes on with a document whose beginning lies before
  bool inside_line = false;      // the text goes on with a line whose beginning lies before
};

// A document or, where it is long, a part of one. Parts are cut where no tokenizer family joins the two sides
// (see safe_cut.h), so that tokenizing them one by one gives the ids of the whole.
struct DocumentPiece {
  std::string_view text;   // valid during the call only
  bool first = true;       // begins a document
  bool last = true;        // ends a document
  int64_t bytes_read = 0;  // of the files as stored (compressed), all files so far: for progress
  TextPlace after;
};
using PieceFunction = std::function<void(const DocumentPiece&)>;

// Calls `fn` with every piece of every document, in order, on this thread. Empty documents are left out.
// Pieces follow from the text alone, so that going on from a place gives the same ones as reading through.
// Unreadable or empty file, one that is no text, damaged compression, bad JSON line: UserError with file (and
// line).
void for_each_piece(const std::vector<std::filesystem::path>& files, const CorpusOptions& options,
                    const PieceFunction& fn, const TextPlace& from = {});

// Told by the name: .jsonl or .ndjson, perhaps with .gz or .zst behind.
bool is_json_lines(const std::filesystem::path& path);

// Sum of the files' sizes as stored: what DocumentPiece::bytes_read counts up to.
int64_t stored_bytes(const std::vector<std::filesystem::path>& files);

}  // namespace megalith
