// Ranks that are threads of one process: an Exchange for tests of blocks. It detects ranks that do not make the same calls,
// and counts what each rank sends.
#pragma once
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "model/exchange.h"

namespace megalith::testing_support {

// The state that the ranks of one axis share.
class Rendezvous {
 public:
  explicit Rendezvous(int64_t size) : offers_(static_cast<size_t>(size)) {}

  struct Offer {
    std::string call;  // must be equal on all ranks
    at::Tensor tensor;
    std::vector<int64_t> cuts;
  };

  // Publishes an offer, waits for the offers of all ranks, calls look(offers), and waits until all ranks have looked.
  template <class Look>
  void meet(int64_t rank, Offer offer, const Look& look) {
    const std::string call = offer.call;
    offers_[static_cast<size_t>(rank)] = std::move(offer);
    wait();
    for (const Offer& other : offers_)
      if (other.call != call) throw std::runtime_error("one rank calls " + call + ", another " + other.call);
    look(offers_);
    wait();
  }
  // Called when a rank has failed: the other ranks must not wait for it.
  void leave() {
    std::lock_guard lock(mutex_);
    broken_ = true;
    changed_.notify_all();
  }

 private:
  void wait() {
    std::unique_lock lock(mutex_);
    if (++arrived_ == offers_.size()) {
      arrived_ = 0;
      round_++;
      changed_.notify_all();
    }
    const uint64_t until = round_ + (arrived_ == 0 ? 0 : 1);
    changed_.wait(lock, [&] { return round_ >= until || broken_; });
    if (round_ < until) throw std::runtime_error("another rank failed");
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Offer> offers_;
  size_t arrived_ = 0;
  uint64_t round_ = 0;
  bool broken_ = false;
};

class ThreadExchange : public Exchange {
 public:
  ThreadExchange(Rendezvous& meeting, int64_t size, int64_t rank) : meeting_(meeting), size_(size), rank_(rank) {}
  int64_t size() const override { return size_; }
  int64_t rank() const override { return rank_; }
  int64_t rows_worth_weights() const override { return worth; }

  void all_gather(at::Tensor& whole, std::span<const int64_t> cuts) override {
    count(slice(whole, cuts, rank_).nbytes() * static_cast<size_t>(size_ - 1));
    meeting_.meet(rank_, offer("all_gather", whole, cuts), [&](const auto& offers) {
      for (int64_t r = 0; r < size_; r++)
        if (r != rank_) slice(whole, cuts, r).copy_(slice(of(offers, r).tensor, cuts, r));
    });
  }
  void reduce_scatter(at::Tensor& whole, std::span<const int64_t> cuts) override {
    count(whole.nbytes() - slice(whole, cuts, rank_).nbytes());
    meeting_.meet(rank_, offer("reduce_scatter", whole, cuts), [&](const auto& offers) {
      at::Tensor sum = wide(slice(of(offers, 0).tensor, cuts, rank_)).clone();
      for (int64_t r = 1; r < size_; r++) sum.add_(wide(slice(of(offers, r).tensor, cuts, rank_)));
      for (int64_t r = 0; r < size_; r++)  // only this rank's slice is defined afterwards
        if (r != rank_) scrap_.push_back(slice(whole, cuts, r));
      slice(whole, cuts, rank_).copy_(sum);
    });
    for (at::Tensor& other : scrap_) other.fill_(1e30);
    scrap_.clear();
  }
  void all_reduce(at::Tensor& x) override {
    count(x.nbytes() * static_cast<size_t>(size_ - 1));
    at::Tensor sum;
    meeting_.meet(rank_, offer("all_reduce", x, {}), [&](const auto& offers) {
      sum = wide(of(offers, 0).tensor).clone();
      for (int64_t r = 1; r < size_; r++) sum.add_(wide(of(offers, r).tensor));
    });
    x.copy_(sum);
  }
  void all_to_all(const at::Tensor& send, std::span<const int64_t> send_cuts, at::Tensor& receive,
                  std::span<const int64_t> receive_cuts) override {
    count(send.nbytes() - slice(send, send_cuts, rank_).nbytes());
    Rendezvous::Offer mine{"all_to_all", send, {send_cuts.begin(), send_cuts.end()}};
    meeting_.meet(rank_, std::move(mine), [&](const auto& offers) {
      for (int64_t r = 0; r < size_; r++)
        slice(receive, receive_cuts, r).copy_(slice(of(offers, r).tensor, of(offers, r).cuts, rank_));
    });
  }
  void start_shift(const at::Tensor& send, at::Tensor& receive) override {
    set_out([this, send, receive] {
      count(send.nbytes());
      meeting_.meet(rank_, {"shift", send, {}}, [&](const auto& offers) {
        const at::Tensor& from = of(offers, (rank_ + size_ - 1) % size_).tensor;
        if (from.sizes() != receive.sizes()) throw std::logic_error("a shift of another size than expected");
        receive.copy_(from);
      });
    }, receive);
  }
  void start_all_to_all(const at::Tensor& send, std::span<const int64_t> send_cuts, at::Tensor& receive,
                        std::span<const int64_t> receive_cuts) override {
    set_out([this, send, from = std::vector(send_cuts.begin(), send_cuts.end()), receive,
             to = std::vector(receive_cuts.begin(), receive_cuts.end())]() mutable { all_to_all(send, from, receive, to); },
            receive);
  }
  void finish() override {
    if (!on_its_way_) throw std::logic_error("nothing is on its way");
    std::exchange(on_its_way_, nullptr)();
  }

  int64_t calls = 0, bytes = 0;  // sent by this rank
  int64_t worth = 1;             // rows_worth_weights; 1: ranks borrow whenever they can

 private:
  static const Rendezvous::Offer& of(const std::vector<Rendezvous::Offer>& offers, int64_t rank) {
    return offers[static_cast<size_t>(rank)];
  }
  static at::Tensor slice(const at::Tensor& whole, std::span<const int64_t> cuts, int64_t rank) {
    const auto r = static_cast<size_t>(rank);
    return whole.narrow(0, cuts[r], cuts[r + 1] - cuts[r]);
  }
  static at::Tensor wide(const at::Tensor& x) { return x.to(c10::promoteTypes(x.scalar_type(), at::kFloat)); }
  static Rendezvous::Offer offer(const std::string& call, const at::Tensor& x, std::span<const int64_t> cuts) {
    EXPECT_TRUE(x.is_contiguous());
    std::string text = call + " " + c10::toString(x.scalar_type()) + " " + std::to_string(x.numel());
    for (int64_t cut : cuts) text += " " + std::to_string(cut);
    return {text, x, {}};
  }
  // Fills `receive` with 1e30, so that data is not there before finish by chance.
  void set_out(std::function<void()> travel, at::Tensor& receive) {
    if (on_its_way_) throw std::logic_error("something is on its way already");
    if (receive.is_floating_point()) receive.fill_(1e30);
    on_its_way_ = std::move(travel);
  }
  void count(size_t sent) {
    if (on_its_way_) throw std::logic_error("a call while another is on its way");
    calls++;
    bytes += static_cast<int64_t>(sent);
  }
  Rendezvous& meeting_;
  int64_t size_, rank_;
  std::function<void()> on_its_way_;
  std::vector<at::Tensor> scrap_;
};

inline Layout layout_of(int64_t tensor, int64_t context, ContextForm form, int64_t expert = 1) {
  const auto ranks = [](int64_t n) { return static_cast<int32_t>(n); };
  return {.data = ranks(expert), .context = ranks(context), .tensor = ranks(tensor), .expert = ranks(expert),
          .context_form = form};
}

// Runs work(exchanges of this rank) on a thread for every rank of a layout. Rethrows the first exception.
inline void run_ranks(int64_t tensor, int64_t context, ContextForm form, const std::function<void(const Exchanges&)>& work,
                      int64_t expert = 1) {
  const int64_t all = tensor * context * expert;
  std::vector<std::unique_ptr<Rendezvous>> by_tensor, by_context,
      by_expert;  // one per rank; some are not used
  for (int64_t i = 0; i < all; i++) {
    by_tensor.push_back(std::make_unique<Rendezvous>(tensor));
    by_context.push_back(std::make_unique<Rendezvous>(context));
    by_expert.push_back(std::make_unique<Rendezvous>(expert));
  }
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < all; rank++)
    threads.emplace_back([&, rank] {
      c10::InferenceMode no_graph;
      at::set_num_threads(1);
      const int64_t t = rank % tensor, c = rank / tensor % context, e = rank / tensor / context;
      ThreadExchange along_tensor(*by_tensor[static_cast<size_t>(rank - t)], tensor, t);
      ThreadExchange along_context(*by_context[static_cast<size_t>(rank - c * tensor)], context, c);
      ThreadExchange along_expert(*by_expert[static_cast<size_t>(rank - e * tensor * context)], expert, e);
      const Exchanges exchanges{Mesh(layout_of(tensor, context, form, expert), static_cast<int>(rank)),
                                tensor > 1 ? &along_tensor : nullptr, context > 1 ? &along_context : nullptr,
                                expert > 1 ? &along_expert : nullptr};
      try {
        work(exchanges);
      } catch (...) {
        {
          std::lock_guard lock(mutex);
          if (!first) first = std::current_exception();
        }
        for (auto* meetings : {&by_tensor, &by_context, &by_expert})
          for (auto& meeting : *meetings) meeting->leave();
      }
    });
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace megalith::testing_support
