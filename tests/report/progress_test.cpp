#include "report/progress.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>

#include "base/log.h"
#include "temp_dir.h"

namespace megalith {
namespace {

ProgressView some_view() {
  ProgressView view;
  view.step = 250;
  view.steps = 1000;
  view.loss = 3.14159;
  view.valid_loss = 3.5;
  view.tokens_per_s = 1536;
  view.seconds_left = 125;
  view.memory_bytes = int64_t{1} << 30;
  view.budget_bytes = int64_t{4} << 30;
  return view;
}

// Columns a terminal needs: escape sequences take none, a UTF-8 character one.
int64_t columns(const std::string& line) {
  int64_t n = 0;
  for (size_t i = 0; i < line.size(); i++) {
    if (line[i] == '\x1b') {
      while (line[i] != 'm') i++;
    } else if ((line[i] & 0xC0) != 0x80) {
      n++;
    }
  }
  return n;
}

bool has(const std::string& text, const std::string& piece) { return text.find(piece) != std::string::npos; }

TEST(ProgressLine, ShowsStepLossSpeedTimeLeftAndMemoryAgainstBudget) {
  std::string line = render_progress(some_view(), {.width = 140});
  for (const char* piece :
       {"step  250/1000", "loss 3.1416", "valid 3.5000", "1536 tok/s", "2m 05s left", "1.00/4.00 GiB"})
    EXPECT_TRUE(has(line, piece)) << piece << " is not in: " << line;
  EXPECT_TRUE(has(line, "[=======                     ]")) << line;  // a quarter of 28
}

TEST(ProgressLine, FitsEveryWidthAndKeepsTheStepLongest) {
  for (bool utf8 : {false, true})
    for (bool colour : {false, true})
      for (int64_t width = 2; width <= 200; width++) {
        std::string line = render_progress(some_view(), {.width = width, .colour = colour, .utf8 = utf8});
        EXPECT_LT(columns(line), width) << line;
        std::string step = "step  250/1000";
        EXPECT_TRUE(has(line, step.substr(0, static_cast<size_t>(width - 1)))) << line;
        EXPECT_TRUE(colour || !has(line, "\x1b")) << line;
      }
}

TEST(ProgressLine, EightyColumnsHoldTheBarAndAllThatIsPromised) {
  std::string line = render_progress(some_view(), {.width = 80});
  for (const char* piece : {"[==", "step  250/1000", "loss 3.1416", "1536 tok/s", "2m 05s left", "1.00/4.00 GiB"})
    EXPECT_TRUE(has(line, piece)) << piece << " is not in: " << line;
}

TEST(ProgressLine, ColourMarksTheBarAndMemoryAboveTheBudget) {
  ProgressView view = some_view();
  view.memory_bytes = view.budget_bytes + 1;
  std::string line = render_progress(view, {.width = 200, .colour = true, .utf8 = true});
  EXPECT_TRUE(has(line, "\x1b[36m━━━━━━━\x1b[0m\x1b[2m")) << line;
  EXPECT_TRUE(has(line, "\x1b[33m4.00/4.00 GiB\x1b[0m")) << line;
}

TEST(ProgressLine, ALossThatIsNotFiniteIsSaid) {
  ProgressView view = some_view();
  view.loss = std::nan("");
  view.skipped = 3;
  std::string line = render_progress(view, {.width = 200});
  EXPECT_TRUE(has(line, "loss not finite")) << line;
  EXPECT_TRUE(has(line, "3 skipped")) << line;
}

class ProgressTest : public testing::Test {
 protected:
  ProgressTest() : file_(std::fopen((dir_ / "out").c_str(), "w")) { ::setenv("NO_COLOR", "1", 1); }
  ~ProgressTest() override {
    std::fclose(file_);
    ::unsetenv("NO_COLOR");
  }
  Progress::Options options(bool terminal) {
    Progress::Options o;
    o.steps = 100;
    o.out = file_;
    o.terminal = terminal;
    o.clock = [this] { return now_; };
    return o;
  }
  static StepMetrics at_step(int64_t step, double loss = 2) {
    StepMetrics m;
    m.step = step;
    m[MetricId::loss] = loss;
    return m;
  }
  std::string output() {
    std::fflush(file_);
    return dir_.read("out");
  }
  static int64_t times(const std::string& text, const std::string& piece) {
    int64_t n = 0;
    for (size_t at = 0; (at = text.find(piece, at)) != std::string::npos; at += piece.size()) n++;
    return n;
  }
  // Returns the last line of the screen after all carriage returns and erasures.
  static std::string last_line(const std::string& text) {
    std::string line = text.substr(text.find_last_of("\r\n") + 1);
    return line.substr(0, line.find("\x1b[K"));
  }

  TempDir dir_;
  std::FILE* file_;
  double now_ = 100;
};

TEST_F(ProgressTest, PlainOutputHasALineEverySoManyStepsAndNoControlCodes) {
  auto o = options(false);
  o.log_every = 10;
  Progress progress(o);
  for (int64_t step = 1; step <= 100; step++) progress.step(at_step(step));
  EXPECT_EQ(times(output(), "\n"), 10);
  EXPECT_TRUE(has(output(), "step 100/100  loss 2.0000"));
  EXPECT_FALSE(has(output(), "\x1b"));
  EXPECT_FALSE(has(output(), "\r"));
}

TEST_F(ProgressTest, PlainOutputSaysSkippedAndValidatedStepsAtOnce) {
  auto o = options(false);
  o.log_every = 50;
  Progress progress(o);
  StepMetrics bad = at_step(3, std::nan(""));
  bad.skipped = true;
  StepMetrics checked = at_step(4);
  checked[MetricId::valid_loss] = 2.5;
  progress.step(bad);
  progress.step(checked);
  EXPECT_TRUE(has(output(), "step 3/100  skipped: loss nan")) << output();
  EXPECT_TRUE(has(output(), "valid 2.5000")) << output();
}

TEST_F(ProgressTest, PlainOutputShowsTheMetricsThatHaveAWordInTheTable) {
  auto o = options(false);
  o.budget_bytes = int64_t{8} << 30;
  Progress progress(o);
  StepMetrics m = at_step(100, 2.5);
  m[MetricId::lr] = 3e-4;
  m[MetricId::grad_norm] = 0.51234;
  m[MetricId::tokens_per_s] = 2048;
  m[MetricId::mem_peak_bytes] = int64_t{5} << 30;
  m[MetricId::valid_loss] = 2.25;
  progress.step(m);
  EXPECT_EQ(output(), "step 100/100  loss 2.5000  valid 2.2500  lr 0.0003  grad 0.512  2048 tok/s  5.00 GiB of 8.00 GiB\n");
}

TEST_F(ProgressTest, TheLiveLineIsRedrawnTenTimesASecondAtMostAndAtTheEnd) {
  Progress progress(options(true));
  for (int64_t step = 1; step <= 100; step++, now_ += 0.01) progress.step(at_step(step));
  int64_t drawn = times(output(), "\r");
  EXPECT_GE(drawn, 9);
  EXPECT_LE(drawn, 12);
  EXPECT_TRUE(has(last_line(output()), "step 100/100")) << output();
}

TEST_F(ProgressTest, TimeLeftCountsOnlyThisProcessAfterAResume) {
  auto o = options(true);
  o.first_step = 50;
  Progress progress(o);
  now_ += 10;  // ten steps at a second each: forty left
  progress.step(at_step(60));
  EXPECT_TRUE(has(last_line(output()), "40.0s left")) << output();
}

TEST_F(ProgressTest, OtherOutputFindsTheLineClearedAndTheEndLeavesNone) {
  {
    Progress progress(options(true));
    progress.step(at_step(1));
    progress.note("a line of its own");
    EXPECT_TRUE(has(output(), "\r\x1b[Ka line of its own\n")) << output();
    EXPECT_TRUE(has(last_line(output()), "step   1/100")) << output();
  }
  EXPECT_EQ(last_line(output()), "");
}

TEST_F(ProgressTest, ARecordHasThePlainLinesOnATerminalToo) {
  for (const bool terminal : {false, true}) {
    std::vector<std::string> lines;
    auto o = options(terminal);
    o.log_every = 10;
    o.record = [&](std::string_view line) { lines.emplace_back(line); };
    Progress progress(o);
    for (int64_t step = 1; step <= 20; step++) progress.step(at_step(step));
    progress.note("a note");
    ASSERT_EQ(lines.size(), 3u) << terminal;
    EXPECT_TRUE(lines[0].starts_with("step 10/100  loss 2.0000") && lines[1].starts_with("step 20/100")) << lines[0];
    EXPECT_EQ(lines[2], "a note");
  }
}

TEST_F(ProgressTest, OutputThatCannotBeWrittenDoesNotStopTheWork) {
  for (const bool terminal : {false, true}) {
    std::FILE* full = std::fopen("/dev/full", "w");
    std::setvbuf(full, nullptr, _IONBF, 0);
    auto o = options(terminal);
    o.out = full;
    Progress progress(o);
    EXPECT_NO_THROW(progress.step(at_step(1)));
    EXPECT_NO_THROW(progress.note("a note"));
    EXPECT_NO_THROW(progress.clear());
    std::fclose(full);
  }
}

TEST_F(ProgressTest, ALogMessageClearsTheLineByItself) {
  Progress progress(options(true));
  progress.step(at_step(1));
  EXPECT_NE(last_line(output()), "");
  log::warn("a warning that this test wants");
  EXPECT_EQ(last_line(output()), "");
}

TEST_F(ProgressTest, TheLossShownIsAMeanThatForgetsAndIgnoresSkippedSteps) {
  Progress progress(options(true));
  progress.step(at_step(1, 4));
  now_++;
  StepMetrics bad = at_step(2, 1e30);
  bad.skipped = true;
  progress.step(bad);
  EXPECT_TRUE(has(last_line(output()), "loss 4.0000")) << output();
  now_++;
  progress.step(at_step(3, 2));
  // Weights 0.95 and 1: (0.95 * 4 + 2) / 1.95.
  EXPECT_TRUE(has(last_line(output()), "loss 2.9744")) << output();
}

}  // namespace
}  // namespace megalith
