// What a world holds and its channels use.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/descriptor_post.h"
#include "comm/mpi_session.h"
#include "comm/backoff.h"
#include "comm/shared_memory.h"
#include "comm/world.h"

namespace megalith {

struct World::State {
  WaitControl waits;
  std::unique_ptr<MpiSession> mpi;  // none in a world of one
  int rank = 0;
  int size = 1;
  int hosts = 1;
  std::vector<int> host_of{0};     // by rank
  std::vector<int> neighbours{0};

  // Neighbours' descriptors come through here; addresses by rank, those of other hosts of no use.
  std::unique_ptr<DescriptorPost> post;
  std::vector<DescriptorPost::Address> addresses;

  // Every rank's control blocks and windows lie in an arena of its own, which its neighbours map: by rank.
  std::vector<Mapping> arenas;
  int64_t arena_used = 0;

  // What World::share_memory announced: this rank's own, and the others' by rank.
  bool shared = false;
  Region region;
  std::vector<Mapping> regions;

  int next_channel = 0;
  std::optional<Channel> everyone;  // none in a world of one

  // Bytes of this rank's arena, zero, on a page of their own.
  int64_t take_from_arena(int64_t bytes);
  // Where `data` lies in this rank's region; -1 when it does not, or not wholly.
  int64_t offset_in_region(const void* data, int64_t bytes) const;
  // Where that is mapped here when it is `rank`'s.
  std::byte* in_region_of(int rank, int64_t offset) const;
  // Collective between neighbours: gives `fd` (-1: none) and maps theirs, by rank.
  std::vector<Mapping> exchange(int fd, int64_t bytes);
};

}  // namespace megalith
