// The state of a world, which its channels use.
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

  // Receives the neighbours' descriptors. Addresses are by rank; those of other hosts are not used.
  std::unique_ptr<DescriptorPost> post;
  std::vector<DescriptorPost::Address> addresses;

  // By rank: the arena with the rank's control blocks and windows. Every rank owns one arena, which its neighbours map.
  std::vector<Mapping> arenas;
  int64_t arena_used = 0;

  // Set by World::share_memory: this rank's region, and the neighbours' regions by rank.
  bool shared = false;
  Region region;
  std::vector<Mapping> regions;

  int next_channel = 0;
  std::optional<Channel> everyone;  // none in a world of one

  // Allocates zeroed bytes in this rank's arena, aligned to pages. Returns their offset.
  int64_t take_from_arena(int64_t bytes);
  // Offset of `data` in this rank's region; -1 if it is not completely inside.
  int64_t offset_in_region(const void* data, int64_t bytes) const;
  // Address in this process of `offset` in the region of `rank`.
  std::byte* in_region_of(int rank, int64_t offset) const;
  // Collective between neighbours: sends `fd` (-1: none), and returns mappings of the descriptors of the others, by
  // rank.
  std::vector<Mapping> exchange(int fd, int64_t bytes);
};

}  // namespace megalith
