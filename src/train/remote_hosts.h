// Remote hosts: hosts that do not see the run directory, which is on rank 0's host. Files that they must read are copied to
// them. Their parts of checkpoints are sent to rank 0.
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
  // Collective: finds out which hosts see what rank 0 writes into `folder`. `world` is borrowed.
  RemoteHosts(World& world, const std::filesystem::path& folder);

  bool any() const { return !remote_ranks_.empty(); }
  bool is_remote() const { return channel_to_first_ >= 0; }  // this rank's host does not see the folder
  bool leads_host() const { return world_.neighbours().front() == world_.rank(); }

  // Collective: copies `path`, a file or a folder with files, from rank 0's host to all remote hosts, and replaces what was
  // there. Does nothing if rank 0 does not have it.
  void bring(const std::filesystem::path& path);
  // Collective: removes the copies of `path` on remote hosts, after all ranks have read them.
  void forget(const std::filesystem::path& path);

  // A piece of a tensor, for a file of a checkpoint.
  using Write = std::function<void(const std::string& file, const std::string& tensor, int64_t element,
                                   std::span<const std::byte> bytes)>;
  // Rank 0: calls `write` with everything that remote ranks send, until each has sent its end. Uses one thread for each
  // remote rank.
  void begin_receiving(Write write);
  void finish_receiving();
  // For a run that fails: stops receiving, and stops the world, so that this rank no longer waits for others.
  void stop_receiving();
  // Remote rank: `send` sends bytes in pieces; `send_end` tells rank 0 that nothing follows.
  void send(const std::string& file, const std::string& tensor, int64_t element, int64_t element_bytes,
            std::span<const std::byte> bytes);
  void send_end();

 private:
  void receive_from(size_t remote, const Write& write);

  World& world_;
  std::vector<int> remote_ranks_;
  std::vector<Channel> channels_;  // on rank 0: by remote rank; on a remote rank: only its own
  int channel_to_first_ = -1;
  std::vector<std::thread> receiving_;
};

}  // namespace megalith
