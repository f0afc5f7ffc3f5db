// Collectives between hosts. Each slice belongs to one member. On every host, one member is the worker of the slice. On the
// host of the slice's own member, the worker is that member. A partial sum goes from host to host in the order of the
// members. A worker adds the data of its host's members to the partial sum, and sends the sum to the next host. So additions
// happen in the same order as on one host. Then the workers of the other hosts receive the result and copy it to their
// neighbours.
//
// The parts of all slices and rounds are tasks in one order that all ranks agree on. A task waits only for earlier
// tasks, so ranks never wait in a cycle. Results lag one round behind the sums, so that both directions are busy.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "comm/channel_state.h"
#include "comm/sums.h"

namespace megalith {
namespace {

struct Task {
  bool sums;      // true: adds to a partial sum; false: passes on a final result
  size_t slice;
  int64_t round;
  int from, to;   // places; -1: none
  size_t run;     // index in runs_ of the members to add; only if `sums` is true
};

// Consecutive members on one host: [first, end).
struct Run {
  int host, first, end;
};

class BetweenHosts {
 public:
  BetweenHosts(Channel::State& channel, Collective kind, Buffer whole, std::span<const int64_t> cuts, Wire wire,
               const std::vector<std::byte*>& buffers);
  ~BetweenHosts();
  void work();

 private:
  // Buffers of a task: a partial sum, and its packed form if it is sent in another format.
  struct SliceTask {
    std::byte* sum = nullptr;
    std::byte* packed = nullptr;
    MPI_Request coming = MPI_REQUEST_NULL, going = MPI_REQUEST_NULL;
  };

  int worker(size_t slice, int host) const;
  std::vector<int> way_of_result(size_t slice) const;  // hosts in the order in which they get the result
  void list_tasks(int64_t round);
  void list_result(size_t slice, int64_t round);
  bool packs() const { return wire_ == Wire::bf16 && whole_.element == Element::float32; }
  static void pack(SliceTask& part, int64_t n) {
    pack_bf16(reinterpret_cast<uint16_t*>(part.packed), reinterpret_cast<const float*>(part.sum), n);
  }
  static void unpack(SliceTask& part, int64_t n) {
    unpack_bf16(reinterpret_cast<float*>(part.sum), reinterpret_cast<const uint16_t*>(part.packed), n);
  }
  int64_t count(const Task& task) const { return rounds_[static_cast<size_t>(task.round)].count[task.slice]; }
  // The task's part of a local member's data, at an address that neighbours can access.
  std::byte* at(const Task& task, int member) const;

  void ask_ahead();
  void add(const Task& task, SliceTask& part);
  void emit_pieces(const Task& task, SliceTask& part);
  void spread(const Task& task, const void* values);
  void send(const Task& task, SliceTask& part, const void* data, int64_t bytes);
  void wait(MPI_Request& request, int peer);
  void lay_out(int64_t round);
  void fetch(int64_t round);

  Channel::State& c_;
  const Collective kind_;
  const Buffer whole_;
  const Wire wire_;
  const std::vector<std::byte*>& buffers_;  // empty: use windows
  const int64_t width_;
  const uint32_t first_turn_;
  const int64_t lag_;                       // rounds
  std::vector<Run> runs_;
  std::vector<Round> rounds_;
  std::vector<Task> tasks_;
  std::vector<size_t> end_of_round_;        // in tasks_
  std::vector<SliceTask> parts_;                 // task i uses parts_[i % size]
  size_t done_ = 0, asked_ = 0;             // tasks
};

BetweenHosts::BetweenHosts(Channel::State& channel, Collective kind, Buffer whole, std::span<const int64_t> cuts,
                           Wire wire, const std::vector<std::byte*>& buffers)
    : c_(channel), kind_(kind), whole_(whole), wire_(wire), buffers_(buffers), width_(size_of(whole.element)),
      first_turn_(channel.turn), lag_(kind == Collective::all_gather ? 0 : 1) {
  const int places = static_cast<int>(c_.size());
  for (int p = 0; p < places; p++) {
    const int host = c_.host_of[static_cast<size_t>(p)];
    if (runs_.empty() || runs_.back().host != host) runs_.push_back({host, p, p});
    runs_.back().end = p + 1;
  }
  const int64_t rounds = rounds_of(whole.bytes());
  int64_t largest = 0;
  for (int64_t round = 0; round < rounds; round++) {
    rounds_.push_back(round_of(cuts, round, rounds));
    largest = std::max(largest, *std::max_element(rounds_.back().count.begin(), rounds_.back().count.end()));
  }
  size_t tasks_of_round = 0;
  for (int64_t round = 0; round < rounds + lag_; round++) {
    const size_t before = tasks_.size();
    list_tasks(round);
    end_of_round_.push_back(tasks_.size());
    tasks_of_round = std::max(tasks_of_round, tasks_.size() - before);
  }
  // A part is free again when its data has been received, at most one round later. So two rounds' worth of parts is
  // enough.
  const int64_t sum_bytes = (largest * accumulator_size(whole.element) + 63) / 64 * 64;
  const int64_t packed_bytes = (largest * 2 + 63) / 64 * 64;
  parts_.resize(2 * tasks_of_round + 4);
  const size_t needed = parts_.size() * static_cast<size_t>(sum_bytes + packed_bytes);
  if (c_.pool.size() < needed) c_.pool.resize(needed);
  for (size_t i = 0; i < parts_.size(); i++) {
    parts_[i].sum = c_.pool.data() + i * static_cast<size_t>(sum_bytes + packed_bytes);
    parts_[i].packed = parts_[i].sum + sum_bytes;
  }
}

BetweenHosts::~BetweenHosts() {
  for (SliceTask& part : parts_) {
    c_.world.mpi->forget(part.coming);
    c_.world.mpi->forget(part.going);
  }
}

int BetweenHosts::worker(size_t slice, int host) const {
  if (c_.host_of[slice] == host) return static_cast<int>(slice);
  const std::vector<int>& places = c_.on_host[static_cast<size_t>(host)];
  return places[slice % places.size()];
}

std::vector<int> BetweenHosts::way_of_result(size_t slice) const {
  const int hosts = static_cast<int>(c_.on_host.size()), last = runs_.back().host, home = c_.host_of[slice];
  std::vector<int> way;
  switch (kind_) {
    case Collective::all_gather:
      for (int i = 0; i < hosts; i++) way.push_back((home + i) % hosts);
      break;
    case Collective::all_reduce:
      for (int i = 0; i < hosts; i++) way.push_back((last - i + hosts) % hosts);
      break;
    case Collective::reduce_scatter:
      way.push_back(last);
      if (home != last) way.push_back(home);
      break;
  }
  return way;
}

void BetweenHosts::list_tasks(int64_t round) {
  const auto has_work = [&](size_t slice, int64_t r) {
    return r >= 0 && r < std::ssize(rounds_) && rounds_[static_cast<size_t>(r)].count[slice] > 0 &&
           worker(slice, c_.here) == c_.place;
  };
  for (size_t slice = 0; slice < c_.size() && kind_ != Collective::all_gather; slice++) {
    if (!has_work(slice, round)) continue;
    for (size_t run = 0; run < runs_.size(); run++) {
      if (runs_[run].host != c_.here) continue;
      Task task{true, slice, round, -1, -1, run};
      if (run > 0) task.from = worker(slice, runs_[run - 1].host);
      if (run + 1 < runs_.size()) {
        task.to = worker(slice, runs_[run + 1].host);
      } else if (const std::vector<int> way = way_of_result(slice); way.size() > 1) {
        task.to = worker(slice, way[1]);
      }
      tasks_.push_back(task);
    }
  }
  for (size_t slice = 0; slice < c_.size(); slice++) {
    if (has_work(slice, round - lag_)) list_result(slice, round - lag_);
  }
}

void BetweenHosts::list_result(size_t slice, int64_t round) {
  const std::vector<int> way = way_of_result(slice);
  const auto found = std::find(way.begin(), way.end(), c_.here);
  if (found == way.end()) return;
  Task task{false, slice, round, -1, -1, 0};
  if (found != way.begin()) task.from = worker(slice, found[-1]);
  if (found + 1 != way.end()) task.to = worker(slice, found[1]);
  if (task.from >= 0 || kind_ == Collective::all_gather) tasks_.push_back(task);  // otherwise the last sum sends it
}

std::byte* BetweenHosts::at(const Task& task, int member) const {
  const Round& part = rounds_[static_cast<size_t>(task.round)];
  const size_t p = static_cast<size_t>(member);
  if (!buffers_.empty()) return buffers_[p] + part.in_whole[task.slice] * width_;
  const uint32_t turn = first_turn_ + static_cast<uint32_t>(task.round);
  return c_.blocks[p]->turns[turn % 2].window + part.in_window[task.slice] * width_;
}

void BetweenHosts::work() {
  for (int64_t round = 0; round < std::ssize(end_of_round_); round++) {
    if (buffers_.empty()) {
      if (round < std::ssize(rounds_)) lay_out(round);
      c_.meet();
    }
    for (; done_ < end_of_round_[static_cast<size_t>(round)]; done_++) {
      ask_ahead();
      const Task& task = tasks_[done_];
      SliceTask& part = parts_[done_ % parts_.size()];
      if (task.from >= 0) wait(part.coming, task.from);
      wait(part.going, -1);
      task.sums ? add(task, part) : emit_pieces(task, part);
    }
    if (buffers_.empty()) {
      c_.meet();
      if (round >= lag_) fetch(round - lag_);
    }
  }
  for (SliceTask& part : parts_) wait(part.going, -1);
  if (buffers_.empty()) c_.turn += static_cast<uint32_t>(rounds_.size());
}

// Starts the receives of this task and the next few early. Only the receive of this task may wait until its part is
// free.
void BetweenHosts::ask_ahead() {
  for (; asked_ < std::min(tasks_.size(), done_ + 4); asked_++) {
    const Task& task = tasks_[asked_];
    SliceTask& part = parts_[asked_ % parts_.size()];
    if (task.from < 0) continue;
    if (asked_ == done_) wait(part.going, -1);
    if (!c_.world.mpi->done(part.going)) return;
    const int64_t width = packs() ? 2 : (task.sums ? accumulator_size(whole_.element) : width_);
    part.coming = c_.world.mpi->receive(packs() ? part.packed : part.sum, count(task) * width,
                                        c_.members[static_cast<size_t>(task.from)], c_.tag + (task.sums ? 0 : 1));
  }
}

void BetweenHosts::add(const Task& task, SliceTask& part) {
  const int64_t n = count(task);
  if (packs() && task.from >= 0) unpack(part, n);
  for (int p = runs_[task.run].first; p < runs_[task.run].end; p++) {
    if (p == 0) {
      begin_sum(whole_.element, part.sum, at(task, p), n);
    } else {
      add_to_sum(whole_.element, part.sum, at(task, p), n);
    }
  }
  const bool final = task.run + 1 == runs_.size();
  if (packs() && task.to >= 0) pack(part, n);
  if (!final) {
    return packs() ? send(task, part, part.packed, n * 2)
                   : send(task, part, part.sum, n * accumulator_size(whole_.element));
  }
  // Results are rounded when they are sent, so this host also uses the rounded one: all ranks get the same result.
  if (packs() && kind_ == Collective::all_reduce) unpack(part, n);
  const void* values = part.sum;
  if (width_ == 2) {
    end_sum(whole_.element, part.packed, part.sum, n);
    values = part.packed;
  }
  spread(task, values);
  if (task.to >= 0) packs() ? send(task, part, part.packed, n * 2) : send(task, part, values, n * width_);
}

void BetweenHosts::emit_pieces(const Task& task, SliceTask& part) {
  const int64_t n = count(task);
  if (task.from < 0) {  // this member's own slice of an all-gather
    const std::byte* own = whole_.data + rounds_[static_cast<size_t>(task.round)].in_whole[task.slice] * width_;
    spread(task, own);
    return send(task, part, own, n * width_);
  }
  if (packs()) unpack(part, n);
  spread(task, part.sum);
  if (task.to >= 0) packs() ? send(task, part, part.packed, n * 2) : send(task, part, part.sum, n * width_);
}

// Copies a final result to all neighbours, or only to the slice's member for reduce_scatter.
void BetweenHosts::spread(const Task& task, const void* values) {
  for (int p : c_.local()) {
    std::byte* const to = at(task, p);
    if (kind_ == Collective::reduce_scatter && p != static_cast<int>(task.slice)) continue;
    if (to != values) std::memcpy(to, values, static_cast<size_t>(count(task) * width_));
  }
}

void BetweenHosts::send(const Task& task, SliceTask& part, const void* data, int64_t bytes) {
  const int tag = task.sums && task.run + 1 < runs_.size() ? c_.tag : c_.tag + 1;
  part.going = c_.world.mpi->send(data, bytes, c_.members[static_cast<size_t>(task.to)], tag);
}

void BetweenHosts::wait(MPI_Request& request, int peer) {
  if (c_.world.mpi->done(request)) return;
  Backoff patience(c_.world.waits, c_.doing, c_.name, peer < 0 ? -1 : c_.members[static_cast<size_t>(peer)]);
  while (!c_.world.mpi->done(request)) {
    if (!patience.looks_again()) patience.nap();
  }
}

// Copies the data that the workers need into this member's window.
void BetweenHosts::lay_out(int64_t round) {
  const Round& part = rounds_[static_cast<size_t>(round)];
  std::byte* const window = c_.mine().turns[(first_turn_ + static_cast<uint32_t>(round)) % 2].window;
  for (size_t p = 0; p < c_.size() && kind_ != Collective::all_gather; p++) {
    std::memcpy(window + part.in_window[p] * width_, whole_.data + part.in_whole[p] * width_,
                static_cast<size_t>(part.count[p] * width_));
  }
}

// Copies the results of the workers from this member's window into its buffer.
void BetweenHosts::fetch(int64_t round) {
  const Round& part = rounds_[static_cast<size_t>(round)];
  const std::byte* const window = c_.mine().turns[(first_turn_ + static_cast<uint32_t>(round)) % 2].window;
  const size_t me = static_cast<size_t>(c_.place);
  for (size_t p = 0; p < c_.size(); p++) {
    if (kind_ == Collective::reduce_scatter ? p != me : kind_ == Collective::all_gather && p == me) continue;
    std::memcpy(whole_.data + part.in_whole[p] * width_, window + part.in_window[p] * width_,
                static_cast<size_t>(part.count[p] * width_));
  }
}

}  // namespace

void Channel::State::work_between_hosts(Collective kind, Buffer whole, std::span<const int64_t> cuts, Wire wire,
                                        const std::vector<std::byte*>& buffers) {
  BetweenHosts(*this, kind, whole, cuts, wire, buffers).work();
}

}  // namespace megalith
