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
  std::string separator;  // text files: a line with exactly this ends a document; empty: a file is one
  int64_t piece_bytes = 1 << 20;  // documents longer than about this arrive in pieces
};

// Files of `data.train` or `data.valid`: names as they are, patterns expanded and sorted, in the order given.
// A missing file, a folder, a pattern that matches nothing: UserError naming the entry.
std::vector<std::filesystem::path> expand_files(const std::vector<std::string>& entries);

// A document or, where it is long, a part of one. Parts are cut where no tokenizer family joins the two sides
// (see safe_cut.h), so that tokenizing them one by one gives the ids of the whole.
struct DocumentPiece {
  std::string_view text;   // valid during the call only
  bool first = true;       // begins a document
  bool last = true;        // ends a document
  int64_t bytes_read = 0;  // of the files as stored (compressed), all files so far: for progress
};
using PieceFunction = std::function<void(const DocumentPiece&)>;

// Calls `fn` with every piece of every document, in order, on this thread. Empty documents are left out.
// Unreadable or empty file, damaged compression, bad JSON line: UserError with file (and line).
void for_each_piece(const std::vector<std::filesystem::path>& files, const CorpusOptions& options,
                    const PieceFunction& fn);

// Told by the name: .jsonl or .ndjson, perhaps with .gz or .zst behind.
bool is_json_lines(const std::filesystem::path& path);

// Sum of the files' sizes as stored: what DocumentPiece::bytes_read counts up to.
int64_t stored_bytes(const std::vector<std::filesystem::path>& files);

}  // namespace megalith
