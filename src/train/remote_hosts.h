// Hosts that do not see the folder of the run, which is on rank 0's host: what others must read is brought to them, and
// their parts of checkpoints are brought to rank 0.
#pragma once
#include <cstddef>
#include <exception>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "comm/world.h"

namespace megalith {

class RemoteHosts {
 public:
  // Collective: whether every host sees what rank 0 writes into `folder`. `world` is borrowed.
  RemoteHosts(World& world, const std::filesystem::path& folder);

  bool any() const { return !remote_ranks_.empty(); }
  bool is_remote() const { return channel_to_first_ >= 0; }  // this rank's host does not see the folder
  bool leads_host() const { return world_.neighbours().front() == world_.rank(); }

  // Collective: `path`, a file or a folder with files that rank 0 sees, is there on all hosts as well; where rank 0 has
  // none, nothing happens. On remote hosts what was there is replaced.
  void bring(const std::filesystem::path& path);
  // Collective: removes again what was brought to remote hosts, when all ranks have read it.
  void forget(const std::filesystem::path& path);

  // A piece of a tensor, for a file of a checkpoint.
  using Write = std::function<void(const std::string& file, const std::string& tensor, int64_t element,
                                   std::span<const std::byte> bytes)>;
  // Rank 0: calls `write` with all that remote ranks send, from threads of its own, until each has sent its end.
  void begin_receiving(Write write);
  void finish_receiving();
  // Ends what has not been finished, and with it all that this rank waits for: for a run that fails.
  void stop_receiving();
  // A remote rank: in pieces; then the end.
  void send(const std::string& file, const std::string& tensor, int64_t element, int64_t element_bytes,
            std::span<const std::byte> bytes);
  void send_end();

 private:
  void receive_from(size_t remote, const Write& write);

  World& world_;
  std::vector<int> remote_ranks_;
  std::vector<Channel> channels_;  // rank 0: by remote rank; a remote rank: its own
  int channel_to_first_ = -1;
  std::vector<std::thread> receiving_;
};

}  // namespace megalith
