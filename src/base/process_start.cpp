#include "base/process_start.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace megalith {

void prepare_process() {
  // open() returns the lowest free number. This is `fd`, because all lower numbers are open.
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF && ::open("/dev/null", O_RDWR) != fd) ::_exit(4);
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace megalith
