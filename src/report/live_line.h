// One line of a terminal that is drawn again and again, in the way of nothing else that is printed.
#pragma once
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

struct LineStyle {
  int64_t width = 80;  // columns; the line never takes the last one, so that no terminal wraps it
  bool colour = false;
  bool utf8 = false;  // box-drawing bar; otherwise ASCII
};

enum class Ink { plain, dim, accent, warning };

struct LineField {
  std::string text;  // ASCII: one byte a column
  Ink ink = Ink::plain;
  int rank = 0;  // the largest goes first when the line is too long
};

// A bar that is filled to `done` (0 to 1), then the fields; without control codes for position. The bar
// shrinks first, then the least needed fields go.
std::string compose_line(double done, std::vector<LineField> fields, const LineStyle& style);

std::string show_left(double seconds);  // "2m 05s left"
double steady_seconds();                // the clock of everything that is drawn

class LiveLine {
 public:
  // `terminal`: default whether `out` is one (and TERM is not "dumb"). Log messages clear the line
  // themselves.
  explicit LiveLine(std::FILE* out, std::optional<bool> terminal = {});
  ~LiveLine();  // removes the line
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  bool terminal() const;
  // Draws what `render` makes, ten times a second at most unless `at_once`; `now` in seconds.
  void draw(const std::function<std::string(const LineStyle&)>& render, double now, bool at_once = false);
  void clear();                       // until it is drawn again
  void print(std::string_view line);  // in its place; the next draw puts it below

 private:
  struct Screen;  // shared with the log's hook, which may outlive this object
  std::shared_ptr<Screen> screen_;
};

}  // namespace megalith
