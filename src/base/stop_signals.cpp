#include "base/stop_signals.h"

#include <csignal>
#include <cstring>
#include <unistd.h>

namespace megalith {
namespace {

volatile std::sig_atomic_t requested = 0;
const char* first_message = "";
struct sigaction former_int, former_term;

void on_signal(int) {
  if (requested) _exit(130);  // checkpoints are renamed into place: the last one is whole
  requested = 1;
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, first_message, std::strlen(first_message));
}

}  // namespace

StopSignals::StopSignals(const char* message) {
  requested = 0;
  first_message = message;
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &former_int);
  sigaction(SIGTERM, &action, &former_term);
}

StopSignals::~StopSignals() {
  sigaction(SIGINT, &former_int, nullptr);
  sigaction(SIGTERM, &former_term, nullptr);
}

bool StopSignals::stop_requested() const { return requested != 0; }

}  // namespace megalith
