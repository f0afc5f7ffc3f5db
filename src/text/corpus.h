// Reads text files as documents. Accepts files and globs; plain, gzip or zstd; plain text or JSON lines. Streams in
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
  std::string text_field = "text";  // field of a JSON line that contains the text
  // Not empty: only JSON lines are read, every line has these fields, none is empty, and each is a document.
  std::vector<std::string> columns;
  // Text files are one document each, unless one of these ends documents:
  std::string separator;          // a line with exactly this
  std::string separator_token;    // this text, anywhere; neither separator is part of a document
  int64_t piece_bytes = 1 << 20;  // documents longer than about this arrive in pieces
};

// Returns the files of `data.train` or `data.valid` in the given order. A pattern becomes its matches, sorted.
// Throws a UserError that names the entry: a missing file, a folder, or a pattern that matches nothing.
std::vector<std::filesystem::path> expand_files(const std::vector<std::string>& entries);

// Read position that another process can resume from. Everything before it has been delivered.
struct TextPlace {
  int64_t file = 0;              // index of the file in the list of files
  int64_t offset = 0;            // byte position in the file's text, decompressed
  int64_t line = 0;              // JSON lines: number of lines before the position
  int64_t line_given = 0;        // JSON lines: bytes of the next line's documents already delivered
  int64_t documents = 0;         // documents of this file that ended before the position
  bool inside_document = false;  // the position is inside a document
  bool inside_line = false;      // the position is inside a line
};

// A document, or a part of a long document. Parts are cut where no tokenizer family joins the two sides (see
// safe_cut.h). So tokenizing the parts one by one gives the ids of the whole document.
struct DocumentPiece {
  std::string_view text;   // valid during the call only
  bool first = true;       // begins a document
  bool last = true;        // ends a document
  int64_t bytes_read = 0;  // of all files so far, as stored (compressed); used to report progress
  TextPlace after;
};
using PieceFunction = std::function<void(const DocumentPiece&)>;

// Calls `fn` with every piece of every document, in order, on this thread. Empty documents are skipped. Pieces depend only
// on the text: resuming from a place gives the same pieces as reading from the beginning. Throws a UserError with the file
// (and line) if a file cannot be read, is empty, is not text, has damaged compressed data or a bad JSON line.
void for_each_piece(const std::vector<std::filesystem::path>& files, const CorpusOptions& options,
                    const PieceFunction& fn, const TextPlace& from = {});

// True if the name ends in .jsonl or .ndjson, optionally followed by .gz or .zst.
bool is_json_lines(const std::filesystem::path& path);

// Returns the sum of the files' sizes as stored, the final value of DocumentPiece::bytes_read.
int64_t stored_bytes(const std::vector<std::filesystem::path>& files);

}  // namespace megalith
