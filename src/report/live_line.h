// One terminal line that is redrawn repeatedly, and that does not disturb other output.
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
  int64_t width = 80;  // columns; the line never uses the last one, so that no terminal wraps it
  bool colour = false;
  bool utf8 = false;  // box-drawing bar; otherwise ASCII
};

enum class Ink { plain, dim, accent, warning };

struct LineField {
  std::string text;  // ASCII: one byte per column
  Ink ink = Ink::plain;
  int rank = 0;  // if the line is too long, the field with the largest rank is removed first
};

// Returns a bar that is filled to `done` (0 to 1), then the fields, without control codes for the position. If the line
// is too long, the bar shrinks first, then the least important fields are removed.
std::string compose_line(double done, std::vector<LineField> fields, const LineStyle& style);

std::string show_left(double seconds);  // "2m 05s left"
double steady_seconds();                // the clock of all progress output

class LiveLine {
 public:
  // `terminal`: by default, true if `out` is a terminal (and TERM is not "dumb"). Log messages clear the line
  // themselves.
  explicit LiveLine(std::FILE* out, std::optional<bool> terminal = {});
  ~LiveLine();  // clears the line
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  bool terminal() const;
  // Draws the result of `render`, at most ten times per second unless `at_once`. `now` is in seconds.
  void draw(const std::function<std::string(const LineStyle&)>& render, double now, bool at_once = false);
  void clear();                       // removes the line until the next draw
  void print(std::string_view line);  // prints instead of the line; the next draw puts the line below

 private:
  struct Screen;  // shared with the log's hook, which may outlive this object
  std::shared_ptr<Screen> screen_;
};

}  // namespace megalith
