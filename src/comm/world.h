// The ranks of a run. Started by mpirun or srun, a process joins the others through MPI; alone it is a world of
// one, and MPI is never touched. Ranks of one host then talk through shared memory only: every rank owns a memfd
// that its neighbours map, without a name, so that nothing is left however a process ends.
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

// Memory of this rank that its neighbours may read and write: a mapping of the whole memfd `fd` at `base`.
// It may be sparse and far larger than memory: pages come with the first touch.
struct Region {
  int fd = -1;
  std::byte* base = nullptr;
  int64_t bytes = 0;
};

class World {
 public:
  // Whether mpirun or srun started this process as one of several.
  static bool launched();
  // Collective. Throws UserError when the launcher and MPI disagree, Fault when the ranks cannot meet.
  static std::unique_ptr<World> join();
  // Without leave() before, ends without a word to the others: what an exception must be able to do.
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const;
  int size() const;
  int host() const;                          // hosts are numbered by their lowest rank
  int hosts() const;
  int host_of(int rank) const;
  const std::vector<int>& neighbours() const;  // the ranks of this host, ascending, this one among them

  // Collective over all ranks, at most once, before the channels that are to profit: buffers inside the region
  // are exchanged without copies. A rank with nothing to share passes an empty region. Region and mapping stay
  // until the world ends.
  void share_memory(const Region& region);

  // Collective over `members` (ranks in the order of their places; this one among them): every rank makes the
  // channels it belongs to in one order that all agree on. The channel must not outlive the world.
  Channel channel(std::vector<int> members, std::string name);

  // Small exchanges between all ranks, one thread at a time.
  void barrier();
  std::string broadcast(std::string_view text, int root);             // what root passed
  std::vector<std::string> all_gather(std::string_view text);         // by rank

  // Every wait of this process, present and future, ends with a Fault. Safe in signal handlers.
  void stop() noexcept;
  // nullptr: nobody. The observer must outlive the waits.
  void observe(WaitObserver* observer);

  // Collective, the orderly end: waits for all, then leaves MPI. No channel may be used afterwards.
  void leave();

  struct State;

 private:
  explicit World(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace megalith
