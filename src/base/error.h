// Errors, one type per person who must act. Asserts are for our own bugs. Everything that a user can cause throws one of
// the other types.
#pragma once
#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace megalith {

// Process exit codes. They are part of the public interface: scripts depend on them.
enum class ExitCode : int {
  done = 0,
  bug = 1,                 // a bug in this program
  user = 2,                // the user's mistake
  fault_resumable = 3,     // a fault with a valid checkpoint to resume from
  fault = 4,               // a fault without a valid checkpoint
  interrupted = 130,       // stopped by a signal, after saving
};

// Cuts the middle out of a text that is too long for a message, and says how long it was. Cuts no UTF-8 character.
std::string shortened(const std::string& text);
// Shortens each word of a text that is too long. Paths and values are words.
std::string with_short_words(const std::string& text);

// True if errno means a fault of the machine: the disk is full or fails, or there is no memory or no descriptor left.
bool is_machine_fault(int error);

// The user's mistake, in five parts. The message shortens a part that is too long and leaves out an empty part:
//   run.yaml:14: parallel.tensor: expected a divisor of model.heads (16), got 3; use 1, 2, 4, 8 or 16
struct UserError : std::runtime_error {
  struct Parts {
    std::string where;     // file, file:line, or "command line"
    std::string key;       // name of the setting or other input that is wrong
    std::string expected;  // without the word "expected"
    std::string got;       // without the word "got"
    std::string hint;      // advice: what to do instead
  };
  explicit UserError(Parts parts);
  Parts parts;
};

// A fault of the machine: disk, memory, or numbers that are no longer finite. Neither a bug nor a wrong setting.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Stopped by a signal. The message says how to continue.
struct Interrupted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Thrown by MEGALITH_ASSERT: a bug in this program. The message contains the file and line.
struct Bug : std::logic_error {
  using std::logic_error::logic_error;
};

[[noreturn]] void fail_assert(const char* file, int line, const char* condition, const std::string& message);

}  // namespace megalith

// Checks a condition that holds unless our own code has a bug. Every build checks it, so keep it out of inner loops.
#define MEGALITH_ASSERT(condition, ...)                                                      \
  do {                                                                                       \
    if (!(condition)) [[unlikely]]                                                           \
      ::megalith::fail_assert(__FILE__, __LINE__, #condition, fmt::format("" __VA_ARGS__));  \
  } while (false)
