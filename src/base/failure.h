// Translates an exception for the person who started the program, into an exit code and a text.
#pragma once
#include <exception>
#include <string>

#include "base/error.h"

namespace megalith {

struct Failure {
  ExitCode code = ExitCode::bug;
  std::string text;
};

// Takes any exception, also one of a library. The text of a library's exception is its first line, because a stack trace
// may follow. A Fault gets the exit code for "no checkpoint", because only the run knows its checkpoints.
Failure failure_of(const std::exception_ptr& thrown);

}  // namespace megalith
