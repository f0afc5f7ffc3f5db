// The main of every test program. It prints failures and skipped tests only, and names the test in which the program
// crashes or hangs, because one process runs many tests.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
extern "C" void __sanitizer_set_death_callback(void (*callback)());
#endif

namespace {

constexpr unsigned kTestSeconds = 300;  // machines are shared

char running[512];  // "[  CRASHED ] Suite.Name\n", empty between tests; read by signal handlers

void name_running_test() {
  if (running[0] != '\0' && ::write(STDOUT_FILENO, running, std::strlen(running)) < 0) return;
}

void die(int signal) {
  name_running_test();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void time_out(int) {
  constexpr std::string_view kWhy = "no end after 300 s\n";
  static_assert(kTestSeconds == 300);
  if (::write(STDOUT_FILENO, kWhy.data(), kWhy.size()) >= 0) name_running_test();
  ::_exit(EXIT_FAILURE);
}

class Listener : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override {
    std::snprintf(running, sizeof running, "[  CRASHED ] %s.%s\n", test.test_suite_name(), test.name());
    if (std::getenv("GTEST_SHARD_INDEX")) ::alarm(kTestSeconds);
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    ::alarm(0);
    running[0] = '\0';
    if (!test.result()->Skipped()) return;
    std::string why;
    for (int i = 0; i < test.result()->total_part_count(); i++) why += test.result()->GetTestPartResult(i).message();
    std::replace(why.begin(), why.end(), '\n', ' ');
    std::printf("[  SKIPPED ] %s.%s: %s\n", test.test_suite_name(), test.name(), why.c_str());
  }
};

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGALRM, time_out);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  __sanitizer_set_death_callback(name_running_test);
#else
  for (int signal : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV}) std::signal(signal, die);
#endif
  testing::GTEST_FLAG(brief) = true;  // --gtest_brief=0 lists every test
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new Listener);  // gtest owns it
  return RUN_ALL_TESTS();
}
