// What an exception means to the person who started the program: an exit code and a text.
#pragma once
#include <exception>
#include <string>

#include "base/error.h"

namespace megalith {

struct Failure {
  ExitCode code = ExitCode::bug;
  std::string text;
};

// Takes any exception, also of a library. Exceptions of libraries give their first line: a stack trace follows it.
// A Fault has the code of a fault without a checkpoint, because only the run knows its checkpoints.
Failure failure_of(const std::exception_ptr& thrown);

}  // namespace megalith
