#include "report/task_progress.h"

#include <gtest/gtest.h>

#include <string>

namespace megalith {
namespace {

// Collects the output of TaskProgress. The test sets the clock.
struct Printed {
  std::FILE* file = std::tmpfile();
  double now = 100;
  ~Printed() { std::fclose(file); }
  TaskProgress::Options options(bool terminal) {
    return {.out = file, .terminal = terminal, .clock = [this] { return now; }, .plain_seconds = 10};
  }
  std::string text() {
    std::string content(static_cast<size_t>(std::ftell(file)), '\0');
    std::rewind(file);
    content.resize(std::fread(content.data(), 1, content.size(), file));
    return content;
  }
};

constexpr int64_t kMiB = 1 << 20;

}  // namespace

TEST(TaskProgress, PlainLinesComeNowAndThen) {
  Printed printed;
  TaskProgress progress("tokenizing", printed.options(false));
  progress.update(100 * kMiB, 400 * kMiB, "1M tokens");  // 100 MiB were done by an earlier process
  printed.now += 9;
  progress.update(120 * kMiB, 400 * kMiB, "2M tokens");
  printed.now += 1;
  progress.update(150 * kMiB, 400 * kMiB, "3M tokens");
  printed.now += 1;
  progress.update(160 * kMiB, 400 * kMiB, "3M tokens");
  EXPECT_EQ(printed.text(), "tokenizing  38%  150 MiB of 400 MiB  3M tokens  5.00 MiB/s  50.0s left\n");
}

TEST(TaskProgress, ATerminalHasOneLineThatGoesAway) {
  Printed printed;
  {
    TaskProgress progress("tokenizing", printed.options(true));
    progress.update(0, 100 * kMiB, "0 tokens");
    for (int i = 1; i <= 10; i++) {
      printed.now += 1;
      progress.update(i * 10 * kMiB, 100 * kMiB, "many tokens");
    }
  }
  const std::string text = printed.text();
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  EXPECT_NE(text.find("tokenizing  50%"), std::string::npos) << text;
  EXPECT_NE(text.find("5.0s left"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\r\x1b[K")) << text;
}

}  // namespace megalith
