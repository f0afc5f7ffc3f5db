#include "text/corpus.h"

#include <glob.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <span>

#include "base/error.h"
#include "base/files.h"
#include "base/join.h"
#include "base/json.h"
#include "base/similar_file.h"
#include "config/yaml.h"
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
  if (result == GLOB_NOSPACE) throw Fault("out of memory while expanding the pattern " + pattern);
  if (files.empty())
    throw UserError({pattern, "data", "a pattern that matches files", "no match",
                     fmt::format("the current folder is {}", fs::current_path().string())});
  return files;
}

// Says what to write instead of an entry that names no file: a list for "a.txt b.txt" and "a.txt,b.txt".
std::string files_meant(const std::string& entry) {
  if (entry.find("://") != std::string::npos) return "Megalith downloads nothing: download the file, and give its name";
  std::vector<std::string> names;
  for (size_t at = 0, end; (at = entry.find_first_not_of(" ,", at)) != std::string::npos; at = end) {
    end = std::min(entry.find_first_of(" ,", at), entry.size());
    names.push_back(entry.substr(at, end - at));
  }
  std::error_code ignored;
  const bool some = std::ranges::any_of(names, [&](const std::string& name) { return fs::exists(name, ignored); });
  return names.size() > 1 && some ? fmt::format("write a list: [{}]", join(names, ", ")) : where_it_may_be(entry);
}

// Delivers the documents of one file. Long documents are delivered in pieces. The end of a piece depends only on the
// text that follows the beginning of the piece, never on how much of it was in memory.
class PieceMaker {
 public:
  PieceMaker(const CorpusOptions& options, const PieceFunction& fn, const TextPlace& from)
      : piece_bytes_(static_cast<size_t>(std::max<int64_t>(options.piece_bytes, 1))),
        fn_(fn),
        place_(from),
        first_(!from.inside_document) {}

  int64_t bytes_read = 0;
  int64_t documents() const { return place_.documents; }

  // Delivers pieces of `text` while it is longer than a piece. `text` is what has been read of the open document and
  // not delivered yet. It begins at `offset` in the file. Returns the number of bytes delivered.
  size_t give_pieces(std::string_view text, int64_t offset) {
    return give_pieces(text, [&](size_t end) {
      place_.offset = offset + static_cast<int64_t>(end);
      place_.inside_line = text[end - 1] != '\n';
    });
  }
  // Delivers the rest of the open document. `rest` begins at `offset` in the file; the text after the document begins
  // at `next`.
  void end_document(std::string_view rest, int64_t offset, int64_t next) {
    if (rest.empty() && first_) return;  // an empty document
    size_t given = give_pieces(rest, offset);
    end(rest.substr(given), next);
  }
  // Delivers the documents of a JSON line. The line has this number (from 0) and goes from `offset` to `next` in the file.
  void give_line(std::span<const std::string> documents, int64_t number, int64_t offset, int64_t next) {
    size_t earlier = static_cast<size_t>(place_.line_given);  // bytes that an earlier process delivered
    size_t before = 0;                                        // bytes of the documents before this one
    for (size_t i = 0; i < documents.size(); i++) {
      std::string_view text = documents[i];
      const size_t delivered = std::min(earlier, text.size()), end_of_text = before + text.size();
      earlier -= delivered;
      text.remove_prefix(delivered);
      if (text.empty()) {
        before = end_of_text;
        continue;
      }
      place_.offset = offset;
      place_.line = number;
      const size_t given =
          give_pieces(text, [&](size_t at) { place_.line_given = static_cast<int64_t>(before + delivered + at); });
      const bool last = i + 1 == documents.size();
      place_.line = last ? number + 1 : number;
      place_.line_given = last ? 0 : static_cast<int64_t>(end_of_text);
      end(text.substr(given), last ? next : offset);
      before = end_of_text;
    }
  }

 private:
  static constexpr size_t kPatience = 16;  // search a text of at most this many pieces for a safe place

  size_t give_pieces(std::string_view text, const std::function<void(size_t)>& set_place) {
    size_t given = 0;
    while (text.size() - given > piece_bytes_) {
      std::string_view rest = text.substr(given);
      size_t cut = last_safe_cut(rest.substr(0, piece_bytes_));
      if (cut == 0) {
        // A piece contains no safe place: search more text before giving up.
        std::string_view more = rest.substr(0, kPatience * piece_bytes_);
        cut = first_safe_cut(more, piece_bytes_ > kCutTail ? piece_bytes_ - kCutTail : 0);
        if (cut == 0 && rest.size() < kPatience * piece_bytes_) break;
        if (cut == 0) cut = last_character_cut(more);
      }
      given += cut;
      set_place(given);
      place_.inside_document = true;
      fn_({rest.substr(0, cut), first_, false, bytes_read, place_});
      first_ = false;
    }
    return given;
  }
  void end(std::string_view text, int64_t next) {
    place_.offset = next;
    place_.documents++;
    place_.inside_document = place_.inside_line = false;
    fn_({text, first_, true, bytes_read, place_});
    first_ = true;
  }

  size_t piece_bytes_;
  const PieceFunction& fn_;
  TextPlace place_;  // after the last piece
  bool first_;       // true if the next piece begins a document
};

// A window on the text of one file, read forward from a place.
class TextWindow {
 public:
  TextWindow(const fs::path& path, const TextPlace& from, int64_t bytes_before, PieceMaker& maker)
      : path_(path), source_(open_text(path)), bytes_before_(bytes_before), maker_(maker) {
    if (from.offset == 0 || source_->seek(from.offset)) {
      begin_ = from.offset;
      return;
    }
    for (bool more = true; more && begin_ < from.offset;) {
      more = read();
      drop(static_cast<size_t>(std::min(std::ssize(text_), from.offset - begin_)));
    }
  }
  // Appends more text. Returns false at the end of the file.
  bool read() {
    bool whole_start = begin_ == 0 && text_.empty();
    bool more = source_->read(text_, kReadBytes);
    if (whole_start) drop(check_text_start(path_, text_));
    maker_.bytes_read = bytes_before_ + source_->stored_bytes_read();
    return more;
  }
  std::string_view text() const { return text_; }
  int64_t offset(size_t at) const { return begin_ + static_cast<int64_t>(at); }  // in the file
  void drop(size_t count) {
    text_.erase(0, count);
    begin_ += static_cast<int64_t>(count);
  }
  int64_t stored_bytes_read() const { return source_->stored_bytes_read(); }

 private:
  const fs::path& path_;
  std::unique_ptr<ByteSource> source_;
  int64_t bytes_before_;
  PieceMaker& maker_;
  std::string text_;
  int64_t begin_ = 0;  // position of text_ in the file
};

// Reads plain text: the file is one document, or separators end documents.
class PlainReader {
 public:
  PlainReader(const CorpusOptions& options, const TextPlace& from, PieceMaker& maker, TextWindow& window)
      : separator_(options.separator),
        token_(options.separator_token),
        maker_(maker),
        window_(window),
        inside_line_(from.inside_line) {}

  void read() {
    for (bool more = true; more;) {
      more = window_.read();
      size_t document = 0;
      if (!separator_.empty())
        document = end_at_lines(more);
      else if (!token_.empty())
        document = end_at_tokens(more);
      else
        known_ = window_.text().size();
      std::string_view open = window_.text().substr(document, known_ - document);
      document += maker_.give_pieces(open, window_.offset(document));
      window_.drop(document);
      known_ -= document;
    }
    maker_.end_document(window_.text(), window_.offset(0), window_.offset(window_.text().size()));
  }

 private:
  void end_document(size_t document, size_t end, size_t next) {
    maker_.end_document(window_.text().substr(document, end - document), window_.offset(document),
                        window_.offset(next));
  }

  // end_at_lines and end_at_tokens end the documents whose separator is in the window. They return the position in the
  // window where the open document begins.
  size_t end_at_lines(bool more) {
    std::string_view text = window_.text();
    size_t document = 0;
    while (known_ < text.size()) {
      size_t end = text.find('\n', known_);
      bool whole = end != std::string::npos || !more;
      end = std::min(end, text.size());
      std::string_view line = text.substr(known_, end - known_);
      // the line is incomplete and may become a separator
      if (!whole && !inside_line_ && line.size() <= separator_.size() + 1) break;
      if (line.ends_with('\r')) line.remove_suffix(1);
      size_t next = std::min(end + 1, text.size());
      if (whole && !inside_line_ && line == separator_) {
        end_document(document, known_, next);
        document = next;
      }
      inside_line_ = !whole;
      known_ = next;
    }
    return document;
  }
  size_t end_at_tokens(bool more) {
    std::string_view text = window_.text();
    size_t document = 0;
    for (size_t at; (at = text.find(token_, known_)) != std::string::npos;) {
      known_ = at + token_.size();
      end_document(document, at, known_);
      document = known_;
    }
    // The last bytes may be the beginning of a separator token.
    size_t half = more ? token_.size() - 1 : 0;
    known_ = std::max(known_, text.size() - std::min(half, text.size()));
    return document;
  }

  const std::string& separator_;
  const std::string& token_;
  PieceMaker& maker_;
  TextWindow& window_;  // the open document, without the pieces already delivered
  size_t known_ = 0;    // text before this position contains no separator
  bool inside_line_;    // true if the line at known_ began earlier, so that it cannot be a separator
};

// Throws UserError: a JSON line has no text with this name.
[[noreturn]] void refuse_field(const CorpusOptions& options, const nlohmann::json& object, const std::string& name,
                               const std::string& where) {
  const char* key = options.columns.empty() || name == options.text_field ? "data.text_field" : "objective.columns";
  std::vector<std::string> names;
  for (const auto& [other, value] : object.items())
    if (value.is_string()) names.push_back(other);
  const auto field = object.find(name);
  throw UserError({where, key, fmt::format("a text field \"{}\"", name),
                   field == object.end() ? "no such field" : field->type_name(),
                   names.empty() ? "the line has no text field" : fmt::format("set {} to one of: {}", key, some_of(names))});
}

void read_json_lines(const CorpusOptions& options, const fs::path& path, const TextPlace& from,
                     PieceMaker& maker, TextWindow& window) {
  using nlohmann::json;
  const bool rows = !options.columns.empty();
  const std::vector<std::string> fields = rows ? options.columns : std::vector{options.text_field};
  int64_t number = from.line;
  auto take_line = [&](std::string_view line, int64_t offset, int64_t next) {
    const int64_t before = number++;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
    std::string where = fmt::format("{}:{}", path.string(), number);
    json object = try_parse_json(line, where);
    if (!object.is_object())
      throw UserError({where, "", "one JSON object per line", std::string(line.substr(0, 40)),
                       is_utf8(line) ? "" : "the line is not UTF-8: convert the file to UTF-8"});
    std::vector<std::string> documents;
    for (const std::string& name : fields) {
      auto field = object.find(name);
      if (field == object.end() || !field->is_string()) refuse_field(options, object, name, where);
      documents.push_back(field->get<std::string>());
      if (rows && documents.back().empty())
        throw UserError({where, name, "text", "an empty text", "remove the line, or fill in this field"});
    }
    maker.give_line(documents, before, offset, next);
  };
  size_t searched = 0;  // text before this position contains no line feed
  for (bool more = true; more;) {
    more = window.read();
    std::string_view text = window.text();
    size_t line = 0;
    for (size_t end; (end = text.find('\n', std::max(line, searched))) != std::string::npos; line = end + 1)
      take_line(text.substr(line, end - line), window.offset(line), window.offset(end + 1));
    window.drop(line);
    searched = window.text().size();
  }
  if (!window.text().empty()) take_line(window.text(), window.offset(0), window.offset(window.text().size()));
}

}  // namespace

std::vector<fs::path> expand_files(const std::vector<std::string>& entries) {
  std::vector<fs::path> files;
  for (const std::string& entry : entries) {
    std::error_code ignored;
    if (fs::is_directory(entry, ignored))
      throw UserError({entry, "data", "a file", "a folder", fmt::format("name the files in it, such as {}/*.txt", entry)});
    if (fs::exists(entry, ignored)) {
      files.emplace_back(entry);
    } else if (entry.find_first_of("*?[{~") != std::string::npos) {
      for (auto& file : expand_pattern(entry)) files.push_back(std::move(file));
    } else {
      throw UserError({entry, "data", "a file", "no such file", files_meant(entry)});
    }
  }
  return files;
}

void for_each_piece(const std::vector<fs::path>& files, const CorpusOptions& options, const PieceFunction& fn,
                    const TextPlace& from) {
  auto before = files.begin() + from.file;
  int64_t bytes_before = stored_bytes({files.begin(), before});
  TextPlace place = from;
  for (; place.file < std::ssize(files); place = {.file = place.file + 1}) {
    const fs::path& path = files[static_cast<size_t>(place.file)];
    PieceMaker maker(options, fn, place);
    TextWindow window(path, place, bytes_before, maker);
    if (is_json_lines(path))
      read_json_lines(options, path, place, maker, window);
    else if (options.columns.empty())
      PlainReader(options, place, maker, window).read();
    else
      throw UserError({path.string(), "data", "JSON lines (.jsonl), with one sample per line", "a text file",
                       "convert it to JSON lines"});
    if (maker.documents() == 0)
      throw UserError({path.string(), "", "text", "only empty documents", ""});
    bytes_before += window.stored_bytes_read();
  }
}

bool is_json_lines(const fs::path& path) {
  fs::path name = path.filename();
  if (name.extension() == ".gz" || name.extension() == ".zst") name.replace_extension();
  return name.extension() == ".jsonl" || name.extension() == ".ndjson";
}

int64_t stored_bytes(const std::vector<fs::path>& files) {
  int64_t total = 0;
  for (const fs::path& path : files) total += std::ssize(MappedFile(path).bytes());
  return total;
}

}  // namespace megalith
