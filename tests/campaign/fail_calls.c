/* Preloaded into a program: counts its calls that change files below given folders and makes one of them fail.
 *
 *   CAMPAIGN_UNDER   folders, separated by ':'; only calls on files below them count
 *   CAMPAIGN_FAIL    NUMBER:KIND; the call with this number (from 1) fails. KIND: EIO, ENOSPC, ENOMEM or short (half is written)
 *   CAMPAIGN_COUNT   file that gets a line "NUMBER CALL PATH" for each call
 *   CAMPAIGN_MEMORY  set: allocations by the program itself count (mmap, mprotect, aligned memory), and no call on files
 *   CAMPAIGN_PROGRAM the name that its executable ends with
 *   CAMPAIGN_CLOCK   AFTER:BACK; AFTER milliseconds from the start the wall clock is set back by BACK seconds
 *
 * io_uring is refused (ENOSYS), so that all writes pass through here. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define NEXT(name) ((__typeof__(&name))next_of(#name))

enum outcome { pass, fail, shorten };

static atomic_long calls;
static long failing;
static int failing_errno; /* 0: short */
static int counting_memory;
static const char* under;
static int log_descriptor = -1;
static long clock_after, clock_back;
static struct timespec begin;

static void* next_of(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  if (!found) abort();
  return found;
}

__attribute__((constructor)) static void read_environment(void) {
  const char* text = getenv("CAMPAIGN_FAIL");
  char kind[16] = "";
  if (text && sscanf(text, "%ld:%15s", &failing, kind) == 2)
    failing_errno = !strcmp(kind, "EIO") ? EIO : !strcmp(kind, "ENOSPC") ? ENOSPC : !strcmp(kind, "ENOMEM") ? ENOMEM : 0;
  under = getenv("CAMPAIGN_UNDER");
  counting_memory = getenv("CAMPAIGN_MEMORY") != NULL;
  if ((text = getenv("CAMPAIGN_COUNT")))
    log_descriptor = (int)syscall(SYS_openat, AT_FDCWD, text, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if ((text = getenv("CAMPAIGN_CLOCK"))) sscanf(text, "%ld:%ld", &clock_after, &clock_back);
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &begin);
}

static int below(const char* path) {
  const size_t length = strlen(path);
  for (const char* at = under; at && *at;) {
    const char* end = strchrnul(at, ':');
    const size_t n = (size_t)(end - at);
    if (n && length >= n && !strncmp(path, at, n) && (path[n] == '/' || path[n] == 0)) return 1;
    at = *end ? end + 1 : end;
  }
  return 0;
}

static enum outcome number_call(const char* call, const char* path, int may_shorten) {
  const long number = atomic_fetch_add(&calls, 1) + 1;
  if (log_descriptor >= 0) {
    char line[PATH_MAX + 64];
    const int n = snprintf(line, sizeof line, "%ld %s %s\n", number, call, path);
    syscall(SYS_write, log_descriptor, line, (size_t)n);
  }
  if (number != failing) return pass;
  if (!failing_errno && may_shorten) return shorten;
  errno = failing_errno ? failing_errno : EIO;
  return fail;
}

/* A call on a path, relative to a folder's descriptor. */
static enum outcome on_path(const char* call, int folder, const char* path) {
  char whole[2 * PATH_MAX + 2] = "";
  if (!under || counting_memory || !path) return pass;
  if (path[0] != '/') {
    char link[64];
    ssize_t n;
    if (folder == AT_FDCWD)
      n = getcwd(whole, PATH_MAX) ? (ssize_t)strlen(whole) : -1;
    else {
      snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
      n = readlink(link, whole, PATH_MAX);
    }
    if (n < 0) return pass;
    whole[n++] = '/';
    whole[n] = 0;
  }
  strncat(whole, path, PATH_MAX);
  return below(whole) ? number_call(call, whole, 0) : pass;
}

static enum outcome on_descriptor(const char* call, int descriptor, int may_shorten) {
  char link[64], path[PATH_MAX];
  if (!under || counting_memory) return pass;
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t n = readlink(link, path, sizeof path - 1);
  if (n < 0) return pass;
  path[n] = 0;
  return below(path) ? number_call(call, path, may_shorten) : pass;
}

/* Opening to read what is there is no change. */
static int changes(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)); }

#define MODE_OF(flags)                      \
  mode_t mode = 0;                          \
  if ((flags) & (O_CREAT | O_TMPFILE)) {    \
    va_list rest;                           \
    va_start(rest, flags);                  \
    mode = (mode_t)va_arg(rest, int);       \
    va_end(rest);                           \
  }

int open(const char* path, int flags, ...) {
  MODE_OF(flags)
  if (changes(flags) && on_path("open", AT_FDCWD, path)) return -1;
  return NEXT(open)(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  MODE_OF(flags)
  if (changes(flags) && on_path("open", AT_FDCWD, path)) return -1;
  return NEXT(open64)(path, flags, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  MODE_OF(flags)
  if (changes(flags) && on_path("openat", folder, path)) return -1;
  return NEXT(openat)(folder, path, flags, mode);
}
int openat64(int folder, const char* path, int flags, ...) {
  MODE_OF(flags)
  if (changes(flags) && on_path("openat", folder, path)) return -1;
  return NEXT(openat64)(folder, path, flags, mode);
}
int creat(const char* path, mode_t mode) { return on_path("creat", AT_FDCWD, path) ? -1 : NEXT(creat)(path, mode); }
FILE* fopen(const char* path, const char* mode) {
  return (mode[0] != 'r' || strchr(mode, '+')) && on_path("fopen", AT_FDCWD, path) ? NULL : NEXT(fopen)(path, mode);
}
FILE* fopen64(const char* path, const char* mode) {
  return (mode[0] != 'r' || strchr(mode, '+')) && on_path("fopen", AT_FDCWD, path) ? NULL : NEXT(fopen64)(path, mode);
}

ssize_t write(int d, const void* data, size_t n) {
  const enum outcome o = on_descriptor("write", d, n > 1);
  return o == fail ? -1 : NEXT(write)(d, data, o == shorten ? n / 2 : n);
}
ssize_t pwrite(int d, const void* data, size_t n, off_t at) {
  const enum outcome o = on_descriptor("pwrite", d, n > 1);
  return o == fail ? -1 : NEXT(pwrite)(d, data, o == shorten ? n / 2 : n, at);
}
ssize_t pwrite64(int d, const void* data, size_t n, off64_t at) {
  const enum outcome o = on_descriptor("pwrite", d, n > 1);
  return o == fail ? -1 : NEXT(pwrite64)(d, data, o == shorten ? n / 2 : n, at);
}
ssize_t writev(int d, const struct iovec* v, int n) {
  const enum outcome o = on_descriptor("writev", d, n > 1);
  return o == fail ? -1 : NEXT(writev)(d, v, o == shorten ? n / 2 : n);
}
ssize_t pwritev(int d, const struct iovec* v, int n, off_t at) {
  const enum outcome o = on_descriptor("pwritev", d, n > 1);
  return o == fail ? -1 : NEXT(pwritev)(d, v, o == shorten ? n / 2 : n, at);
}
ssize_t pwritev64(int d, const struct iovec* v, int n, off64_t at) {
  const enum outcome o = on_descriptor("pwritev", d, n > 1);
  return o == fail ? -1 : NEXT(pwritev64)(d, v, o == shorten ? n / 2 : n, at);
}
size_t fwrite(const void* data, size_t size, size_t n, FILE* file) {
  const enum outcome o = on_descriptor("fwrite", fileno(file), 0);
  return o == fail ? 0 : NEXT(fwrite)(data, size, n, file);
}
int fflush(FILE* file) { return file && on_descriptor("fflush", fileno(file), 0) ? EOF : NEXT(fflush)(file); }

int fsync(int d) { return on_descriptor("fsync", d, 0) ? -1 : NEXT(fsync)(d); }
int fdatasync(int d) { return on_descriptor("fdatasync", d, 0) ? -1 : NEXT(fdatasync)(d); }
int ftruncate(int d, off_t n) { return on_descriptor("ftruncate", d, 0) ? -1 : NEXT(ftruncate)(d, n); }
int ftruncate64(int d, off64_t n) { return on_descriptor("ftruncate", d, 0) ? -1 : NEXT(ftruncate64)(d, n); }
int fallocate(int d, int mode, off_t at, off_t n) {
  return on_descriptor("fallocate", d, 0) ? -1 : NEXT(fallocate)(d, mode, at, n);
}
int fallocate64(int d, int mode, off64_t at, off64_t n) {
  return on_descriptor("fallocate", d, 0) ? -1 : NEXT(fallocate64)(d, mode, at, n);
}
int posix_fallocate(int d, off_t at, off_t n) {
  return on_descriptor("posix_fallocate", d, 0) ? errno : NEXT(posix_fallocate)(d, at, n);
}
int posix_fallocate64(int d, off64_t at, off64_t n) {
  return on_descriptor("posix_fallocate", d, 0) ? errno : NEXT(posix_fallocate64)(d, at, n);
}
int truncate(const char* path, off_t n) { return on_path("truncate", AT_FDCWD, path) ? -1 : NEXT(truncate)(path, n); }
int truncate64(const char* path, off64_t n) { return on_path("truncate", AT_FDCWD, path) ? -1 : NEXT(truncate64)(path, n); }
int mkdir(const char* path, mode_t mode) { return on_path("mkdir", AT_FDCWD, path) ? -1 : NEXT(mkdir)(path, mode); }
int mkdirat(int f, const char* path, mode_t mode) { return on_path("mkdirat", f, path) ? -1 : NEXT(mkdirat)(f, path, mode); }
int rename(const char* from, const char* to) { return on_path("rename", AT_FDCWD, to) ? -1 : NEXT(rename)(from, to); }
int renameat(int f, const char* from, int t, const char* to) {
  return on_path("renameat", t, to) ? -1 : NEXT(renameat)(f, from, t, to);
}
int renameat2(int f, const char* from, int t, const char* to, unsigned flags) {
  return on_path("renameat2", t, to) ? -1 : NEXT(renameat2)(f, from, t, to, flags);
}
int link(const char* from, const char* to) { return on_path("link", AT_FDCWD, to) ? -1 : NEXT(link)(from, to); }
int linkat(int f, const char* from, int t, const char* to, int flags) {
  return on_path("linkat", t, to) ? -1 : NEXT(linkat)(f, from, t, to, flags);
}
int symlink(const char* from, const char* to) { return on_path("symlink", AT_FDCWD, to) ? -1 : NEXT(symlink)(from, to); }
int unlink(const char* path) { return on_path("unlink", AT_FDCWD, path) ? -1 : NEXT(unlink)(path); }
int unlinkat(int f, const char* path, int flags) {
  return on_path("unlinkat", f, path) ? -1 : NEXT(unlinkat)(f, path, flags);
}
int rmdir(const char* path) { return on_path("rmdir", AT_FDCWD, path) ? -1 : NEXT(rmdir)(path); }
int remove(const char* path) { return on_path("remove", AT_FDCWD, path) ? -1 : NEXT(remove)(path); }

/* liburing's: only checked for failure by the caller. */
int io_uring_queue_init(unsigned depth, void* ring, unsigned flags);
int io_uring_queue_init(unsigned depth, void* ring, unsigned flags) {
  (void)depth, (void)ring, (void)flags;
  return -ENOSYS;
}

/* An allocation by the program itself, not by a library. */
static enum outcome on_memory(const char* call, const void* caller) {
  Dl_info where;
  const char* program = getenv("CAMPAIGN_PROGRAM");
  if (!counting_memory || !program || !dladdr(caller, &where) || !where.dli_fname || !strstr(where.dli_fname, program)) return pass;
  return number_call(call, "", 0);
}

void* aligned_alloc(size_t alignment, size_t bytes) {
  return on_memory("aligned_alloc", __builtin_return_address(0)) ? NULL : NEXT(aligned_alloc)(alignment, bytes);
}
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  return on_memory("posix_memalign", __builtin_return_address(0)) ? ENOMEM : NEXT(posix_memalign)(out, alignment, bytes);
}
int mprotect(void* begin_of, size_t bytes, int rights) {
  return on_memory("mprotect", __builtin_return_address(0)) ? -1 : NEXT(mprotect)(begin_of, bytes, rights);
}
void* mmap(void* wanted, size_t bytes, int rights, int flags, int d, off_t at) {
  if ((flags & MAP_ANONYMOUS) && on_memory("mmap", __builtin_return_address(0))) return MAP_FAILED;
  return NEXT(mmap)(wanted, bytes, rights, flags, d, at);
}
void* mmap64(void* wanted, size_t bytes, int rights, int flags, int d, off64_t at) {
  if ((flags & MAP_ANONYMOUS) && on_memory("mmap", __builtin_return_address(0))) return MAP_FAILED;
  return NEXT(mmap64)(wanted, bytes, rights, flags, d, at);
}

static void set_back(struct timespec* now) {
  struct timespec monotonic;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &monotonic);
  const double passed = (double)(monotonic.tv_sec - begin.tv_sec) + (double)(monotonic.tv_nsec - begin.tv_nsec) * 1e-9;
  if (clock_back && passed * 1000 >= (double)clock_after) now->tv_sec -= clock_back;
}
int clock_gettime(clockid_t clock, struct timespec* now) {
  const int result = (int)syscall(SYS_clock_gettime, clock, now);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) set_back(now);
  return result;
}
time_t time(time_t* out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}
int gettimeofday(struct timeval* restrict now, void* restrict zone) {
  struct timespec precise;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}
