// An exchange for a rank that runs alone. No messages arrive: the rank receives zeros, or copies of what it sends to itself.
// With it, one process can run, measure and test one rank's part of a block. Times and memory then exclude the messages.
#pragma once
#include "model/exchange.h"

namespace megalith {

class AbsentRanks final : public Exchange {
 public:
  AbsentRanks(int64_t size, int64_t rank) : size_(size), rank_(rank) {}
  int64_t size() const override { return size_; }
  int64_t rank() const override { return rank_; }
  int64_t rows_worth_weights() const override { return 1; }
  void all_gather(at::Tensor& whole, std::span<const int64_t> cuts) override;
  void reduce_scatter(at::Tensor&, std::span<const int64_t>) override {}
  void all_reduce(at::Tensor&) override {}
  void all_to_all(const at::Tensor& send, std::span<const int64_t> send_cuts, at::Tensor& receive,
                  std::span<const int64_t> receive_cuts) override;
  void start_shift(const at::Tensor& send, at::Tensor& receive) override;
  void start_all_to_all(const at::Tensor& send, std::span<const int64_t> send_cuts, at::Tensor& receive,
                        std::span<const int64_t> receive_cuts) override;
  void finish() override {}

 private:
  int64_t size_, rank_;
};

}  // namespace megalith
