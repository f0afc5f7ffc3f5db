#include "engine/channel_exchange.h"

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "base/start_threads.h"
#include "engine/exchange_buffer.h"

namespace megalith {
namespace {

// Borrowing an expert moves its weights twice and its gradient back: 12 bytes per parameter. One row takes 6 operations per
// parameter. At 150 GFLOP/s, 60 rows take as long as copies in a host's memory (5 GB/s), and 300 rows take as long as copies
// over a network (1 GB/s). Both are rounded up to a power of two.
constexpr int64_t kRowsInMemory = 64, kRowsOnTheWire = 512;

// Converts cuts of rows to cuts of elements or bytes: `factor` of them per row.
std::vector<int64_t> scaled(std::span<const int64_t> cuts, int64_t factor) {
  std::vector<int64_t> out(cuts.begin(), cuts.end());
  for (int64_t& cut : out) cut *= factor;
  return out;
}

int64_t row_elements(const at::Tensor& x) { return x.size(0) == 0 ? 0 : x.numel() / x.size(0); }

}  // namespace

int64_t ChannelExchange::rows_worth_weights() const { return channel_.spans_hosts() ? kRowsOnTheWire : kRowsInMemory; }

void ChannelExchange::all_gather(at::Tensor& whole, std::span<const int64_t> cuts) {
  channel_.all_gather(buffer_of(whole), scaled(cuts, row_elements(whole)));
}

void ChannelExchange::reduce_scatter(at::Tensor& whole, std::span<const int64_t> cuts) {
  channel_.reduce_scatter(buffer_of(whole), scaled(cuts, row_elements(whole)));
}

void ChannelExchange::all_reduce(at::Tensor& x) { channel_.all_reduce(buffer_of(x)); }

void ChannelExchange::all_to_all(const at::Tensor& send, std::span<const int64_t> send_cuts, at::Tensor& receive,
                                 std::span<const int64_t> receive_cuts) {
  const auto bytes = [](const at::Tensor& x) { return row_elements(x) * x.element_size(); };
  channel_.all_to_all(bytes_of(send), scaled(send_cuts, bytes(send)), bytes_of(receive),
                      scaled(receive_cuts, bytes(receive)));
}

void ChannelExchange::start_shift(const at::Tensor& send, at::Tensor& receive) {
  // A send waits until its receiver receives. All ranks send to the next one, so send and receive must run at the same time.
  const int size = channel_.size(), next = (channel_.place() + 1) % size, before = (channel_.place() + size - 1) % size;
  on_a_thread([this, send, next] { channel_.send(bytes_of(send), next); });
  rest_ = [this, receive, before] { channel_.receive(bytes_of(receive), before); };
}

void ChannelExchange::start_all_to_all(const at::Tensor& send, std::span<const int64_t> send_cuts, at::Tensor& receive,
                                       std::span<const int64_t> receive_cuts) {
  on_a_thread([this, send, from = std::vector(send_cuts.begin(), send_cuts.end()), receive,
               to = std::vector(receive_cuts.begin(), receive_cuts.end())]() mutable {
    all_to_all(send, from, receive, to);
  });
}

void ChannelExchange::finish() {
  if (rest_) std::exchange(rest_, nullptr)();
  join();
  if (fault_) std::rethrow_exception(std::exchange(fault_, nullptr));
}

// `transfer` owns references to its tensors: they must stay valid if the caller fails before the transfer ends.
void ChannelExchange::on_a_thread(std::function<void()> transfer) {
  transfer_ = start_thread([this, transfer = std::move(transfer)] {
    try {
      transfer();
    } catch (...) {
      fault_ = std::current_exception();
    }
  });
}

void ChannelExchange::join() {
  if (transfer_.joinable()) transfer_.join();
}

}  // namespace megalith
