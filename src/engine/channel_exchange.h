// Exchanges of a block between the ranks of one axis, over a channel.
#pragma once
#include <exception>
#include <functional>
#include <thread>

#include "comm/channel.h"
#include "model/exchange.h"

namespace megalith {

class ChannelExchange final : public Exchange {
 public:
  explicit ChannelExchange(Channel channel) : channel_(std::move(channel)) {}
  ~ChannelExchange() override { join(); }

  int64_t size() const override { return channel_.size(); }
  int64_t rank() const override { return channel_.place(); }
  int64_t rows_worth_weights() const override;

  void all_gather(at::Tensor& whole, std::span<const int64_t> cuts) override;
  void reduce_scatter(at::Tensor& whole, std::span<const int64_t> cuts) override;
  void all_reduce(at::Tensor& x) override;
  void all_to_all(const at::Tensor& send, std::span<const int64_t> send_cuts, at::Tensor& receive,
                  std::span<const int64_t> receive_cuts) override;

  void start_shift(const at::Tensor& send, at::Tensor& receive) override;
  void start_all_to_all(const at::Tensor& send, std::span<const int64_t> send_cuts, at::Tensor& receive,
                        std::span<const int64_t> receive_cuts) override;
  void finish() override;

 private:
  void on_a_thread(std::function<void()> transfer);
  void join();

  Channel channel_;
  std::thread transfer_;
  std::function<void()> rest_;  // the part of a transfer that the caller runs in finish()
  std::exception_ptr fault_;    // thrown by the transfer thread
};

}  // namespace megalith
