#include "comm/mpi_session.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/error.h"

namespace megalith {
namespace {

constexpr int64_t kPiece = int64_t{1} << 20;
const std::string kStart = "start";

// Sets OpenMPI's settings unless the user has set them. Ranks of one host use our own shared memory. OpenMPI's shared
// memory would only leave files in /dev/shm when a process is killed. One host needs no network except loopback.
void prepare_environment() {
  const auto prefer = [](const char* name, const char* value) { setenv(name, value, 0); };
  prefer("OMPI_MCA_mpi_yield_when_idle", "1");
  const auto value_of = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string_view(value != nullptr ? value : "");
  };
  const std::string_view all = value_of("OMPI_COMM_WORLD_SIZE"), here = value_of("OMPI_COMM_WORLD_LOCAL_SIZE");
  if ((!all.empty() && all == here) || (all.empty() && value_of("SLURM_STEP_NUM_NODES") == "1")) {
    prefer("OMPI_MCA_pml", "ob1");
    prefer("OMPI_MCA_btl", "self,tcp");
    if (value_of("OMPI_MCA_btl_tcp_if_exclude").empty()) prefer("OMPI_MCA_btl_tcp_if_include", "lo");
  } else {
    prefer("OMPI_MCA_btl", "^vader");
  }
}

}  // namespace

MpiSession::MpiSession() {
  prepare_environment();
  int provided = MPI_THREAD_SINGLE;
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
  if (provided < MPI_THREAD_SERIALIZED) {
    throw Fault("this MPI supports only one thread; MPI_THREAD_SERIALIZED is required");
  }
  check(MPI_Comm_dup(MPI_COMM_WORLD, &ranks_), "MPI_Comm_dup");
  check(MPI_Comm_set_errhandler(ranks_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check(MPI_Comm_rank(ranks_, &rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(ranks_, &size_), "MPI_Comm_size");
  int* bound = nullptr;
  int known = 0;
  check(MPI_Comm_get_attr(ranks_, MPI_TAG_UB, &bound, &known), "MPI_Comm_get_attr");
  largest_tag_ = known != 0 ? *bound : 32767;
}

MPI_Request MpiSession::send(const void* data, int64_t bytes, int to, int tag) {
  MPI_Request request = MPI_REQUEST_NULL;
  std::lock_guard hold(lock_);
  check(MPI_Issend(data, static_cast<int>(bytes), MPI_BYTE, to, tag, ranks_, &request), "MPI_Issend");
  return request;
}

MPI_Request MpiSession::receive(void* data, int64_t bytes, int from, int tag) {
  MPI_Request request = MPI_REQUEST_NULL;
  std::lock_guard hold(lock_);
  check(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, from, tag, ranks_, &request), "MPI_Irecv");
  return request;
}

bool MpiSession::done(MPI_Request& request) {
  if (request == MPI_REQUEST_NULL) return true;
  int finished = 0;
  std::lock_guard hold(lock_);
  check(MPI_Test(&request, &finished, MPI_STATUS_IGNORE), "MPI_Test");
  return finished != 0;
}

bool MpiSession::drop_done(std::vector<MPI_Request>& requests) {
  if (requests.empty()) return false;
  std::vector<int> places(requests.size());
  int finished = 0;
  {
    std::lock_guard hold(lock_);
    check(MPI_Testsome(static_cast<int>(requests.size()), requests.data(), &finished, places.data(),
                       MPI_STATUSES_IGNORE), "MPI_Testsome");
  }
  return std::erase(requests, MPI_REQUEST_NULL) > 0;
}

void MpiSession::forget(MPI_Request& request) {
  std::lock_guard hold(lock_);
  if (request == MPI_REQUEST_NULL) return;
  MPI_Cancel(&request);  // has no effect on some sends; the process is about to end anyway
  MPI_Request_free(&request);
}

void MpiSession::progress() {
  int found = 0;
  std::lock_guard hold(lock_);
  check(MPI_Iprobe(rank_, 0, ranks_, &found, MPI_STATUS_IGNORE), "MPI_Iprobe");
}

void MpiSession::all_gather(const void* mine, void* all, int bytes, const WaitControl& control) {
  MPI_Request request = MPI_REQUEST_NULL;
  {
    std::lock_guard hold(lock_);
    check(MPI_Iallgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, ranks_, &request), "MPI_Iallgather");
  }
  wait(request, control, "all_gather");
}

void MpiSession::barrier(const WaitControl& control) {
  MPI_Request request = MPI_REQUEST_NULL;
  {
    std::lock_guard hold(lock_);
    check(MPI_Ibarrier(ranks_, &request), "MPI_Ibarrier");
  }
  wait(request, control, "barrier");
}

void MpiSession::finalize() {
  std::lock_guard hold(lock_);
  MPI_Comm_free(&ranks_);
  check(MPI_Finalize(), "MPI_Finalize");
}

void MpiSession::wait(MPI_Request& request, const WaitControl& control, const char* what) {
  if (done(request)) return;
  Backoff patience(control, what, kStart, -1);
  while (!done(request)) {
    if (!patience.looks_again()) patience.nap();
  }
}

void MpiSession::check(int result, const char* call) const {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(result, text, &length);
  throw Fault(fmt::format("{}: {}", call, std::string_view(text, static_cast<size_t>(length))));
}

Transfers::~Transfers() {
  for (MPI_Request& request : under_way_) session_.forget(request);
}

void Transfers::send(std::span<const std::byte> data, int to, int tag) {
  for (int64_t at = 0; at < std::ssize(data); at += kPiece) {
    under_way_.push_back(session_.send(data.data() + at, std::min(kPiece, std::ssize(data) - at), to, tag));
  }
}

void Transfers::receive(std::span<std::byte> data, int from, int tag) {
  for (int64_t at = 0; at < std::ssize(data); at += kPiece) {
    under_way_.push_back(session_.receive(data.data() + at, std::min(kPiece, std::ssize(data) - at), from, tag));
  }
}

void Transfers::wait(const WaitControl& control, const char* what, const std::string& channel, int peer) {
  session_.drop_done(under_way_);
  if (under_way_.empty()) return;
  Backoff patience(control, what, channel, peer);
  while (!under_way_.empty()) {
    if (session_.drop_done(under_way_)) {
      patience.start_over();
    } else if (!patience.looks_again()) {
      patience.nap();
    }
  }
}

}  // namespace megalith
