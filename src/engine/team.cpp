#include "engine/team.h"

#include <functional>
#include <numeric>
#include <thread>

#include "engine/exchange_buffer.h"

namespace megalith {
namespace {

std::vector<int> all_of(const Layout& layout) {
  std::vector<int> ranks(static_cast<size_t>(layout.ranks()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

// Cuts of rows as cuts of units (elements or bytes).
std::vector<int64_t> scaled(std::span<const int64_t> cuts, int64_t factor) {
  std::vector<int64_t> out(cuts.begin(), cuts.end());
  for (int64_t& cut : out) cut *= factor;
  return out;
}

int64_t row_elements(const at::Tensor& x) { return x.size(0) == 0 ? 0 : x.numel() / x.size(0); }

}  // namespace

// Of an expert, weights there twice and a gradient back are 36 bytes a parameter; a row is 18 operations. At 150 GFLOP/s 64
// rows pay for 5 GB/s, as copies in a host's memory have, and 300 for a network's 1 GB/s.
constexpr int64_t kRowsInMemory = 64, kRowsOnTheWire = 512;

// What blocks exchange among the ranks of one axis, over a channel.
class Team::ChannelExchange final : public Exchange {
 public:
  explicit ChannelExchange(Channel channel) : channel_(std::move(channel)) {}
  ~ChannelExchange() override { join(); }

  int64_t size() const override { return channel_.size(); }
  int64_t rank() const override { return channel_.place(); }
  int64_t rows_worth_weights() const override { return channel_.spans_hosts() ? kRowsOnTheWire : kRowsInMemory; }

  void all_gather(at::Tensor& whole, std::span<const int64_t> cuts) override {
    channel_.all_gather(buffer_of(whole), scaled(cuts, row_elements(whole)));
  }
  void reduce_scatter(at::Tensor& whole, std::span<const int64_t> cuts) override {
    channel_.reduce_scatter(buffer_of(whole), scaled(cuts, row_elements(whole)));
  }
  void all_reduce(at::Tensor& x) override { channel_.all_reduce(buffer_of(x)); }
  void all_to_all(const at::Tensor& send, std::span<const int64_t> send_cuts, at::Tensor& receive,
                  std::span<const int64_t> receive_cuts) override {
    const auto bytes = [](const at::Tensor& x) { return row_elements(x) * x.element_size(); };
    channel_.all_to_all(bytes_of(send), scaled(send_cuts, bytes(send)), bytes_of(receive),
                        scaled(receive_cuts, bytes(receive)));
  }

  void start_shift(const at::Tensor& send, at::Tensor& receive) override {
    // A send waits for its receiver, which may wait for its own: the two run side by side.
    const int size = channel_.size(), next = (channel_.place() + 1) % size, before = (channel_.place() + size - 1) % size;
    beside([this, send, next] { channel_.send(bytes_of(send), next); });
    rest_ = [this, receive, before] { channel_.receive(bytes_of(receive), before); };
  }
  void start_all_to_all(const at::Tensor& send, std::span<const int64_t> send_cuts, at::Tensor& receive,
                        std::span<const int64_t> receive_cuts) override {
    beside([this, send, from = std::vector(send_cuts.begin(), send_cuts.end()), receive,
            to = std::vector(receive_cuts.begin(), receive_cuts.end())]() mutable { all_to_all(send, from, receive, to); });
  }
  void finish() override {
    if (rest_) std::exchange(rest_, nullptr)();
    join();
    if (fault_) std::rethrow_exception(std::exchange(fault_, nullptr));
  }

 private:
  // On a thread of its own; what it needs it holds, should the caller fail meanwhile.
  void beside(std::function<void()> travel) {
    travelling_ = std::thread([this, travel = std::move(travel)] {
      try {
        travel();
      } catch (...) {
        fault_ = std::current_exception();
      }
    });
  }
  void join() {
    if (travelling_.joinable()) travelling_.join();
  }

  Channel channel_;
  std::thread travelling_;
  std::function<void()> rest_;  // of what travels, the caller's part in the end
  std::exception_ptr fault_;    // of the other thread
};

Team::Team(World& world, const Layout& layout, ContextForm form)
    : world_(world),
      mesh_(layout, world.rank()),
      form_(form),
      everyone_(world.channel(all_of(layout), "all ranks")),
      replicas_(world.channel(mesh_.peers({Axis::data, Axis::context}), "data")) {
  if (layout.tensor > 1) {
    tensor_net_.emplace(world.channel(mesh_.peers(Axis::tensor), "tensor, gradients"));
    tensor_ = std::make_unique<ChannelExchange>(world.channel(mesh_.peers(Axis::tensor), "tensor"));
  }
  if (layout.context > 1)
    context_ = std::make_unique<ChannelExchange>(world.channel(mesh_.peers(Axis::context), "context"));
  if (layout.expert > 1) {
    same_experts_.emplace(world.channel(mesh_.expert_replicas(), "data, same experts"));
    expert_ = std::make_unique<ChannelExchange>(world.channel(mesh_.expert_peers(), "expert"));
  }
  if (layout.pipeline > 1) {
    forward_.emplace(world.channel(mesh_.peers(Axis::pipeline), "pipeline, activations"));
    backward_.emplace(world.channel(mesh_.peers(Axis::pipeline), "pipeline, gradients"));
    table_.emplace(world.channel(mesh_.peers(Axis::pipeline), "pipeline, tied table"));
  }
}

Team::~Team() = default;

Split Team::split() const {
  return {mesh_.size(Axis::tensor), mesh_.place(Axis::tensor), mesh_.size(Axis::context), mesh_.place(Axis::context), form_,
          mesh_.layout().expert, mesh_.expert_place()};
}

Ranks Team::inside() { return {split(), tensor_.get(), context_.get(), expert_.get()}; }

}  // namespace megalith
