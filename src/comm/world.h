// The ranks of a run. A process that mpirun or srun started joins the others through MPI. A process alone is a world of
// one and does not use MPI. Ranks of one host communicate only through shared memory. Every rank owns a memfd that its
// neighbours map. The memfd has no name, so it disappears even if a process is killed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/channel.h"
#include "comm/wait.h"

namespace megalith {

// Memory of this rank that its neighbours may read and write: a mapping of the whole memfd `fd` at `base`. It may be
// sparse and far larger than memory: pages are allocated at the first access.
struct Region {
  int fd = -1;
  std::byte* base = nullptr;
  int64_t bytes = 0;
};

class World {
 public:
  // True if mpirun or srun started this process as one of several.
  static bool launched();
  // Collective. Throws UserError if launcher and MPI disagree, and Fault if the ranks cannot connect.
  static std::unique_ptr<World> join();
  // Without a call of leave(), ends without notifying the others, as is needed after an exception.
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const;
  int size() const;
  int host() const;                          // hosts are numbered by their lowest rank
  int hosts() const;
  int host_of(int rank) const;
  const std::vector<int>& neighbours() const;  // the ranks of this host, ascending, including this one

  // Collective over all ranks, at most once. Call it before creating the channels that should use it: they exchange
  // buffers inside the region without copies. A rank without memory to share passes an empty region. Region and mapping
  // must exist until the world ends.
  void share_memory(const Region& region);

  // Collective over `members`: ranks in the order of their places, including this rank. All ranks create their common
  // channels in the same order. The channel must not outlive the world.
  Channel channel(std::vector<int> members, std::string name);

  // Small exchanges between all ranks. Only one thread at a time.
  void barrier();
  std::string broadcast(std::string_view text, int root);             // returns the text of `root`
  std::vector<std::string> all_gather(std::string_view text);         // returns the texts by rank

  // Ends every present and future wait of this process with a Fault. Safe in signal handlers.
  void stop() noexcept;
  // nullptr: no observer. The observer must outlive the waits.
  void observe(WaitObserver* observer);

  // The orderly end, collective: waits for all ranks, then ends MPI. No channel may be used afterwards.
  void leave();

  struct State;

 private:
  explicit World(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace megalith
