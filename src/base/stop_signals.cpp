#include "base/stop_signals.h"

#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>

namespace megalith {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP, SIGPIPE};

volatile std::sig_atomic_t first_signal = 0;
volatile std::sig_atomic_t asked = 0;  // Ctrl-C or SIGTERM has asked to stop
const char* first_message = "";
std::array<struct sigaction, kSignals.size()> former;

// Only a repeated Ctrl-C or SIGTERM means that the user does not want to wait. A shell repeats SIGHUP, and each write to a
// broken pipe raises SIGPIPE.
void on_signal(int signal) {
  const bool first = first_signal == 0, asks = signal == SIGINT || signal == SIGTERM;
  if (asks && asked) _exit(130);  // checkpoints are renamed into place, so the last one is complete
  if (asks) asked = 1;
  if (!first) return;
  first_signal = signal;
  if (signal == SIGPIPE) return;  // stderr may be the broken pipe
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, first_message, std::strlen(first_message));
}

}  // namespace

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return std::string("SIG") + (name ? name : std::to_string(signal));
}

bool is_ignored(int signal) {
  struct sigaction now {};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

StopSignals::StopSignals(const char* message, AfterStop after) : after_(after) {
  first_signal = 0;
  asked = 0;
  first_message = message;
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < kSignals.size(); i++) {
    const bool left_alone = (kSignals[i] == SIGHUP || kSignals[i] == SIGPIPE) && is_ignored(kSignals[i]);
    ::sigaction(kSignals[i], left_alone ? nullptr : &action, &former[i]);
  }
}

StopSignals::~StopSignals() {
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  for (size_t i = 0; i < kSignals.size(); i++)
    ::sigaction(kSignals[i], after_ == AfterStop::ignore ? &ignore : &former[i], nullptr);
}

bool StopSignals::stop_requested() const { return first_signal != 0; }

std::string StopSignals::signal() const { return first_signal != 0 ? signal_name(first_signal) : ""; }

}  // namespace megalith
