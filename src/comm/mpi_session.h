// MPI as this program uses it: messages between ranks, and no call that blocks. So one lock around every call is enough
// for any number of threads (MPI_THREAD_SERIALIZED). Waits back off and can be stopped like all other waits.
#pragma once
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "comm/backoff.h"

namespace megalith {

class MpiSession {
 public:
  MpiSession();  // calls MPI_Init_thread; throws Fault
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  int largest_tag() const { return largest_tag_; }

  // A send is done when the receiver has begun to receive it and the memory may be used again.
  MPI_Request send(const void* data, int64_t bytes, int to, int tag);
  MPI_Request receive(void* data, int64_t bytes, int from, int tag);
  bool done(MPI_Request& request);  // true for MPI_REQUEST_NULL
  bool drop_done(std::vector<MPI_Request>& requests);  // true if any was done
  void forget(MPI_Request& request);
  // Lets pending messages make progress: MPI works only during its calls.
  void progress();

  // Gathers `bytes` bytes of every rank into `all`, by rank.
  void all_gather(const void* mine, void* all, int bytes, const WaitControl& control);
  void barrier(const WaitControl& control);
  // Ends MPI in an orderly way. Blocks until all ranks call it.
  void finalize();

 private:
  void wait(MPI_Request& request, const WaitControl& control, const char* what);
  void check(int result, const char* call) const;

  std::mutex lock_;
  MPI_Comm ranks_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1, largest_tag_ = 0;
};

// Requests that belong together. The destructor forgets requests that are still pending (after a stopped wait).
class Transfers {
 public:
  explicit Transfers(MpiSession& session) : session_(session) {}
  ~Transfers();
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  // send and receive move data in pieces, so that waits see progress.
  void send(std::span<const std::byte> data, int to, int tag);
  void receive(std::span<std::byte> data, int from, int tag);
  void wait(const WaitControl& control, const char* what, const std::string& channel, int peer);

 private:
  MpiSession& session_;
  std::vector<MPI_Request> under_way_;
};

}  // namespace megalith
