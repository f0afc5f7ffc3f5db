#include "comm/world.h"

#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "comm/channel_state.h"
#include "comm/world_state.h"

namespace megalith {
namespace {

// Only reserves addresses; pages are allocated when channels use them.
constexpr int64_t kArena = int64_t{4} << 30;
constexpr int64_t kPage = 4096;

int number_in_environment(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : 0;
}

// Returns the number of ranks that the launcher states, or 0 without such a launcher.
int ranks_by_launcher() {
  if (const int ranks = number_in_environment("OMPI_COMM_WORLD_SIZE"); ranks > 0) return ranks;
  // Set by srun for its tasks. The batch script itself has no step.
  if (std::getenv("SLURM_STEP_ID") != nullptr) return number_in_environment("SLURM_STEP_NUM_TASKS");
  return 0;
}

std::string first_line_of(const char* path) {
  try {
    std::string text = read_file(path);
    return text.substr(0, text.find('\n'));
  } catch (const UserError&) {
    return "";
  }
}

// Equal for ranks that can access each other's memory. They need the same kernel, and the same network namespace for the
// abstract sockets that pass descriptors. For tests, MEGALITH_PRETEND_RANKS_PER_HOST divides a host into hosts with
// fewer ranks.
uint64_t host_fingerprint(int rank) {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  char network[256] = "";
  if (readlink("/proc/self/ns/net", network, sizeof network - 1) < 0) network[0] = '\0';
  const int pretend = number_in_environment("MEGALITH_PRETEND_RANKS_PER_HOST");
  const std::string kernel = first_line_of("/proc/sys/kernel/random/boot_id");
  const std::string text = fmt::format("{} {} {} {}", kernel, name, network, pretend > 0 ? rank / pretend : 0);
  return XXH3_64bits(text.data(), text.size());
}

// Data that every rank sends to all others when it joins.
struct Card {
  uint64_t host = 0;
  DescriptorPost::Address address;
};

}  // namespace

bool World::launched() {
  const int ranks = ranks_by_launcher();
  return ranks > 1 || (ranks == 0 && std::getenv("PMIX_RANK") != nullptr);
}

std::unique_ptr<World> World::join() {
  auto made = std::make_unique<State>();
  State& state = *made;
  if (launched()) {
    state.mpi = std::make_unique<MpiSession>();
    const int promised = ranks_by_launcher();
    state.rank = state.mpi->rank();
    state.size = state.mpi->size();
    if (promised > 0 && promised != state.size) {
      throw UserError({.where = "launcher",
                       .key = "ranks",
                       .expected = fmt::format("{} ranks connected through MPI", promised),
                       .got = fmt::format("{}", state.size),
                       .hint = "with srun, use --mpi=pmix; with mpirun, use the OpenMPI that megalith is linked to"});
    }
  }
  std::unique_ptr<World> world(new World(std::move(made)));
  if (state.size == 1) return world;

  state.post = std::make_unique<DescriptorPost>();
  const Card mine{host_fingerprint(state.rank), state.post->address()};
  std::vector<Card> cards(static_cast<size_t>(state.size));
  state.mpi->all_gather(&mine, cards.data(), sizeof mine, state.waits);
  std::map<uint64_t, int> number;
  state.host_of.clear();
  state.neighbours.clear();
  for (int rank = 0; rank < state.size; rank++) {
    const Card& card = cards[static_cast<size_t>(rank)];
    state.host_of.push_back(number.emplace(card.host, static_cast<int>(number.size())).first->second);
    if (card.host == mine.host) state.neighbours.push_back(rank);
    state.addresses.push_back(card.address);
  }
  state.hosts = static_cast<int>(number.size());
  state.waits.may_spin = state.neighbours.size() <= std::max(1u, std::thread::hardware_concurrency());

  const Descriptor arena = make_memfd("megalith-channels", kArena);
  state.arenas = state.exchange(arena.get(), kArena);
  state.arenas[static_cast<size_t>(state.rank)] = Mapping(arena.get(), kArena);
  std::vector<int> all(static_cast<size_t>(state.size));
  for (int rank = 0; rank < state.size; rank++) all[static_cast<size_t>(rank)] = rank;
  state.everyone = world->channel(all, "world");
  return world;
}

World::World(std::unique_ptr<State> state) : state_(std::move(state)) {}
World::~World() = default;

int World::rank() const { return state_->rank; }
int World::size() const { return state_->size; }
int World::host() const { return host_of(state_->rank); }
int World::hosts() const { return state_->hosts; }
int World::host_of(int rank) const { return state_->host_of.at(static_cast<size_t>(rank)); }
const std::vector<int>& World::neighbours() const { return state_->neighbours; }

void World::share_memory(const Region& region) {
  MEGALITH_ASSERT(!state_->shared, "a rank can share only one region");
  state_->shared = true;
  state_->region = region;
  if (state_->size > 1) state_->regions = state_->exchange(region.bytes > 0 ? region.fd : -1, region.bytes);
}

Channel World::channel(std::vector<int> members, std::string name) {
  return Channel(std::make_unique<Channel::State>(*state_, std::move(members), std::move(name)));
}

void World::barrier() {
  if (state_->everyone) state_->everyone->barrier();
}

std::string World::broadcast(std::string_view text, int root) {
  std::string result(state_->rank == root ? text : "");
  if (!state_->everyone) return result;
  int64_t bytes = std::ssize(result);
  state_->everyone->broadcast(Buffer(&bytes, sizeof bytes, Element::byte), root);
  result.resize(static_cast<size_t>(bytes));
  state_->everyone->broadcast(Buffer(result.data(), bytes, Element::byte), root);
  return result;
}

std::vector<std::string> World::all_gather(std::string_view text) {
  if (!state_->everyone) return {std::string(text)};
  const size_t ranks = static_cast<size_t>(state_->size), mine = static_cast<size_t>(state_->rank);
  std::vector<int64_t> cuts(ranks + 1), lengths(ranks);
  for (size_t rank = 0; rank <= ranks; rank++) cuts[rank] = static_cast<int64_t>(rank * sizeof(int64_t));
  lengths[mine] = std::ssize(text);
  state_->everyone->all_gather(std::as_writable_bytes(std::span(lengths)), cuts);
  for (size_t rank = 0; rank < ranks; rank++) cuts[rank + 1] = cuts[rank] + lengths[rank];
  std::string all(static_cast<size_t>(cuts.back()), '\0');
  std::copy(text.begin(), text.end(), all.begin() + cuts[mine]);
  state_->everyone->all_gather(Buffer(all.data(), std::ssize(all), Element::byte), cuts);
  std::vector<std::string> texts;
  for (size_t rank = 0; rank < ranks; rank++) {
    texts.push_back(all.substr(static_cast<size_t>(cuts[rank]), static_cast<size_t>(lengths[rank])));
  }
  return texts;
}

void World::stop() noexcept { state_->waits.stop.store(true, std::memory_order_relaxed); }
void World::observe(WaitObserver* observer) { state_->waits.observer.store(observer, std::memory_order_release); }

void World::leave() {
  if (state_->mpi == nullptr) return;
  barrier();
  state_->mpi->finalize();
}

int64_t World::State::take_from_arena(int64_t bytes) {
  const int64_t at = arena_used;
  arena_used += (bytes + kPage - 1) / kPage * kPage;
  if (arena_used > kArena) throw Fault("too many channels: they need more shared memory than is reserved");
  return at;
}

int64_t World::State::offset_in_region(const void* data, int64_t bytes) const {
  const int64_t offset = static_cast<const std::byte*>(data) - region.base;
  return region.bytes > 0 && offset >= 0 && offset + bytes <= region.bytes ? offset : -1;
}

std::byte* World::State::in_region_of(int other, int64_t offset) const {
  return (other == rank ? region.base : regions[static_cast<size_t>(other)].data()) + offset;
}

std::vector<Mapping> World::State::exchange(int fd, int64_t bytes) {
  std::vector<Mapping> mappings(static_cast<size_t>(size));
  const auto keep = [&](const DescriptorPost::Letter& letter) {
    if (letter.bytes == 0) return;
    mappings.at(static_cast<size_t>(letter.rank)) = Mapping(letter.descriptor.get(), letter.bytes);
  };
  size_t missing = neighbours.size() - 1;
  for (int other : neighbours) {
    if (other == rank) continue;
    while (!post->send(addresses[static_cast<size_t>(other)], rank, bytes, fd)) {  // the receiver's queue is full
      if (const auto letter = post->receive_if_any(); letter.rank >= 0) {
        keep(letter);
        missing--;
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
  }
  for (; missing > 0; missing--) keep(post->receive(waits));
  mpi->barrier(waits);  // no rank begins another exchange while one still receives letters of this one
  return mappings;
}

}  // namespace megalith
