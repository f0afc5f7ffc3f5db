// Errors by who must act. Asserts are for our own bugs; everything a user can cause is one of these.
#pragma once
#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace megalith {

// Process exit codes, part of the outside interface.
enum class ExitCode : int {
  done = 0,
  bug = 1,                 // ours
  user = 2,                // the user's mistake
  fault_resumable = 3,     // a fault with a valid checkpoint to resume from
  fault = 4,               // a fault without one
  interrupted = 130,       // stopped by a signal, after saving
};

// Cuts the middle out of a text that is too long for a message, and says how long it was. Cuts no UTF-8 character.
std::string shortened(const std::string& text);
// The same for each word of a text, as words are paths and values.
std::string with_short_words(const std::string& text);

// True if errno means a fault of the machine: the disk is full or fails, or there is no memory or no descriptor left.
bool is_machine_fault(int error);

// The user's mistake, in five parts. A part that is too long is shortened in the message. Empty parts are left out of the message:
//   run.yaml:14: parallel.tensor: expected a divisor of model.heads (16), got 3; use 1, 2, 4, 8 or 16
struct UserError : std::runtime_error {
  struct Parts {
    std::string where;     // file, file:line, or "command line"
    std::string key;       // the setting or thing that is wrong
    std::string expected;  // without the word "expected"
    std::string got;       // without the word "got"
    std::string hint;      // what to do instead
  };
  explicit UserError(Parts parts);
  Parts parts;
};

// The machine's fault (disk, memory, numbers that stopped being finite): neither a bug nor a wrong setting.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Stopped by a signal; the message says how to go on.
struct Interrupted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Thrown by MEGALITH_ASSERT: a bug of ours, with its place.
struct Bug : std::logic_error {
  using std::logic_error::logic_error;
};

[[noreturn]] void fail_assert(const char* file, int line, const char* condition, const std::string& message);

}  // namespace megalith

// States what must hold if our own code is right; on in every build, so keep it out of inner loops.
#define MEGALITH_ASSERT(condition, ...)                                                      \
  do {                                                                                       \
    if (!(condition)) [[unlikely]]                                                           \
      ::megalith::fail_assert(__FILE__, __LINE__, #condition, fmt::format("" __VA_ARGS__));  \
  } while (false)
