#include "text/corpus.h"

#include <glob.h>

#include <nlohmann/json.hpp>

#include <algorithm>

#include "base/error.h"
#include "text/byte_source.h"
#include "text/safe_cut.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

constexpr size_t kReadBytes = 1 << 18;

std::vector<fs::path> expand_pattern(const std::string& pattern) {
  glob_t found{};
  int result = ::glob(pattern.c_str(), GLOB_BRACE | GLOB_TILDE, nullptr, &found);
  std::vector<fs::path> files;
  for (size_t i = 0; result == 0 && i < found.gl_pathc; i++)
    if (fs::is_regular_file(found.gl_pathv[i])) files.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  if (result == GLOB_NOSPACE) throw Fault("no memory to expand " + pattern);
  if (files.empty())
    throw UserError({pattern, "data", "a pattern that matches files", "no match",
                     fmt::format("the current folder is {}", fs::current_path().string())});
  return files;
}

// Hands out documents, long ones in pieces.
class PieceMaker {
 public:
  PieceMaker(const CorpusOptions& options, const PieceFunction& fn)
      : piece_bytes_(static_cast<size_t>(std::max<int64_t>(options.piece_bytes, 1))), fn_(fn) {}

  int64_t bytes_read = 0;
  int64_t documents() const { return documents_; }

  // Gives away pieces of `text`, the open document's text so far, while more than a piece is there.
  // Returns how many bytes are done with.
  size_t give_pieces(std::string_view text) {
    size_t given = 0;
    while (text.size() - given > piece_bytes_) {
      std::string_view rest = text.substr(given);
      size_t cut = last_safe_cut(rest.substr(0, piece_bytes_));
      if (cut == 0) {
        // No good place: take more text before giving up on one.
        std::string_view more = rest.substr(0, std::min(rest.size(), kPatience * piece_bytes_));
        cut = last_safe_cut(more);
        if (cut == 0 && rest.size() < kPatience * piece_bytes_) break;
        if (cut == 0) cut = last_character_cut(more);
      }
      give(rest.substr(0, cut), false);
      given += cut;
    }
    return given;
  }
  // The rest of the open document.
  void end_document(std::string_view rest) {
    if (rest.empty() && first_) return;  // an empty document
    size_t given = give_pieces(rest);
    give(rest.substr(given), true);
    documents_++;
  }

 private:
  static constexpr size_t kPatience = 16;  // pieces' worth of text that is searched for a safe place

  void give(std::string_view text, bool last) {
    fn_({text, first_, last, bytes_read});
    first_ = last;
  }

  size_t piece_bytes_;
  const PieceFunction& fn_;
  bool first_ = true;
  int64_t documents_ = 0;
};

// Running text: the file is one document, or separator lines end documents.
class PlainReader {
 public:
  PlainReader(const CorpusOptions& options, PieceMaker& maker)
      : separator_(options.separator), maker_(maker) {}

  void read(ByteSource& source, int64_t bytes_before) {
    for (bool more = true; more;) {
      more = source.read(buffer_, kReadBytes);
      maker_.bytes_read = bytes_before + source.stored_bytes_read();
      size_t document = separator_.empty() ? 0 : end_separated(more);
      if (separator_.empty()) line_ = buffer_.size();
      document += maker_.give_pieces(std::string_view(buffer_).substr(document, line_ - document));
      buffer_.erase(0, document);
      line_ -= document;
    }
    maker_.end_document(buffer_);
  }

 private:
  // Ends the documents whose separator is in the buffer; returns where the open document begins.
  size_t end_separated(bool more) {
    size_t document = 0;
    while (line_ < buffer_.size()) {
      size_t end = buffer_.find('\n', line_);
      bool whole = end != std::string::npos || !more;
      end = std::min(end, buffer_.size());
      std::string_view line = std::string_view(buffer_).substr(line_, end - line_);
      if (!whole && !inside_line_ && line.size() <= separator_.size() + 1) break;  // may become a separator
      if (line.ends_with('\r')) line.remove_suffix(1);
      size_t next = std::min(end + 1, buffer_.size());
      if (whole && !inside_line_ && line == separator_) {
        maker_.end_document(std::string_view(buffer_).substr(document, line_ - document));
        document = next;
      }
      inside_line_ = !whole;
      line_ = next;
    }
    return document;
  }

  const std::string& separator_;
  PieceMaker& maker_;
  std::string buffer_;        // the open document, from what has not been given away
  size_t line_ = 0;           // what lies before is known to hold no separator
  bool inside_line_ = false;  // the line at line_ began earlier and is too long for a separator
};

void read_json_lines(ByteSource& source, const CorpusOptions& options, const fs::path& path,
                     int64_t bytes_before, PieceMaker& maker) {
  using nlohmann::json;
  int64_t number = 0;
  auto take_line = [&](std::string_view line) {
    number++;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
    std::string where = fmt::format("{}:{}", path.string(), number);
    json object = json::parse(line, nullptr, false);
    if (!object.is_object())
      throw UserError({where, "", "a JSON object a line", std::string(line.substr(0, 40)), ""});
    auto field = object.find(options.text_field);
    if (field == object.end() || !field->is_string()) {
      std::string names;
      for (const auto& [name, value] : object.items())
        if (value.is_string()) names += (names.empty() ? "" : ", ") + name;
      throw UserError({where, "data.text_field", fmt::format("a text field \"{}\"", options.text_field),
                       field == object.end() ? "none" : field->type_name(),
                       names.empty() ? "the line has no text field" : "text fields of this line: " + names});
    }
    maker.end_document(field->get_ref<const std::string&>());
  };
  std::string buffer;
  for (bool more = true; more;) {
    size_t searched = buffer.size();
    more = source.read(buffer, kReadBytes);
    maker.bytes_read = bytes_before + source.stored_bytes_read();
    size_t line = 0;
    for (size_t end; (end = buffer.find('\n', std::max(line, searched))) != std::string::npos; line = end + 1)
      take_line(std::string_view(buffer).substr(line, end - line));
    buffer.erase(0, line);
  }
  if (!buffer.empty()) take_line(buffer);
}

}  // namespace

std::vector<fs::path> expand_files(const std::vector<std::string>& entries) {
  std::vector<fs::path> files;
  for (const std::string& entry : entries) {
    std::error_code ignored;
    if (fs::is_directory(entry, ignored))
      throw UserError({entry, "data", "a file", "a folder", fmt::format("name its files: {}/*.txt", entry)});
    if (fs::exists(entry, ignored)) {
      files.emplace_back(entry);
    } else if (entry.find_first_of("*?[{~") != std::string::npos) {
      for (auto& file : expand_pattern(entry)) files.push_back(std::move(file));
    } else {
      throw UserError({entry, "data", "a file", "nothing of that name",
                       fmt::format("the current folder is {}", fs::current_path().string())});
    }
  }
  return files;
}

void for_each_piece(const std::vector<fs::path>& files, const CorpusOptions& options,
                    const PieceFunction& fn) {
  PieceMaker maker(options, fn);
  int64_t bytes_before = 0;
  for (const fs::path& path : files) {
    auto source = open_text(path);
    int64_t documents_before = maker.documents();
    if (is_json_lines(path))
      read_json_lines(*source, options, path, bytes_before, maker);
    else
      PlainReader(options, maker).read(*source, bytes_before);
    if (maker.documents() == documents_before)
      throw UserError({path.string(), "", "text", "none", "every document in the file is empty"});
    bytes_before += source->stored_bytes_read();
  }
}

bool is_json_lines(const fs::path& path) {
  fs::path name = path.filename();
  if (name.extension() == ".gz" || name.extension() == ".zst") name.replace_extension();
  return name.extension() == ".jsonl" || name.extension() == ".ndjson";
}

int64_t stored_bytes(const std::vector<fs::path>& files) {
  int64_t total = 0;
  for (const fs::path& path : files) {
    std::error_code error;
    auto size = fs::file_size(path, error);
    if (error) throw UserError({path.string(), "", "", "", fmt::format("cannot read: {}", error.message())});
    total += static_cast<int64_t>(size);
  }
  return total;
}

}  // namespace megalith
