// Each kernel on its own, at GPT-2 124M's sizes (4 x 256 tokens), with Google Benchmark: operations or bytes a second, to
// be read against what products and plain passes over memory reach (`Product` and `Copy`, measured here too).
#include <ATen/Parallel.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <benchmark/benchmark.h>
#include <c10/core/InferenceMode.h>

#include "memory/allocator.h"
#include "model/kernels/attention.h"
#include "model/kernels/cross_entropy.h"
#include "model/kernels/gelu.h"
#include "model/kernels/rms_norm.h"
#include "model/kernels/rope.h"
#include "model/kernels/swiglu.h"
#include "optim/optimizer.h"

namespace megalith {
namespace {

constexpr int64_t B = 4, T = 256, N = B * T, C = 768, F = 3072, H = 12, D = 64, V = 50257;

void flop(benchmark::State& state, double each) {
  state.counters["FLOP/s"] = benchmark::Counter(each, benchmark::Counter::kIsIterationInvariantRate);
}
void bytes(benchmark::State& state, double each) {
  state.counters["B/s"] = benchmark::Counter(each, benchmark::Counter::kIsIterationInvariantRate);
}

void Copy(benchmark::State& state) {
  at::Tensor a = at::ones({32 << 20}), b = at::ones({32 << 20}), c = at::empty({32 << 20});
  for (auto _ : state) at::add_out(c, a, b);
  bytes(state, 12.0 * (32 << 20));
}

void Product(benchmark::State& state) {
  at::Tensor a = at::ones({N, C}), b = at::ones({C, F}), c = at::empty({N, F});
  for (auto _ : state) at::mm_out(c, a, b);
  flop(state, 2.0 * N * C * F);
}

struct Heads {
  at::Tensor qkv = at::randn({B, T, 3 * H, D}).transpose(1, 2), g_qkv = at::empty({B, T, 3 * H, D}).transpose(1, 2);
  at::Tensor o = at::empty({B, T, H, D}).transpose(1, 2), g = at::randn({B, T, H, D}).transpose(1, 2);
  kernels::Sight sight;
  Heads() {
    for (int64_t n = 0; n < N; n++) sight.begin.push_back(0), sight.end.push_back(n % T + 1);
  }
  static at::Tensor part(const at::Tensor& x, int64_t i) { return x.narrow(1, i * H, H); }
};

void AttentionForward(benchmark::State& state) {
  Heads x;
  for (auto _ : state) kernels::attention(x.part(x.qkv, 0), x.part(x.qkv, 1), x.part(x.qkv, 2), x.sight, {}, x.o);
  flop(state, 2.0 * N * T * C);
}

void AttentionBackward(benchmark::State& state) {
  Heads x;
  at::Tensor lse = kernels::attention(x.part(x.qkv, 0), x.part(x.qkv, 1), x.part(x.qkv, 2), x.sight, {}, x.o);
  for (auto _ : state)
    kernels::attention_backward(x.g, x.part(x.qkv, 0), x.part(x.qkv, 1), x.part(x.qkv, 2), x.o, lse, x.sight, {},
                                x.part(x.g_qkv, 0), x.part(x.g_qkv, 1), x.part(x.g_qkv, 2));
  flop(state, 5.0 * N * T * C);
}

// Runs an in-place kernel on fresh copies: left to itself, its own output would soon be all denormal numbers.
template <class Kernel>
void in_place(benchmark::State& state, const at::Tensor& a, const at::Tensor& b, const Kernel& kernel) {
  at::Tensor x = at::empty_like(a), y = at::empty_like(b);
  for (auto _ : state) {
    state.PauseTiming();
    x.copy_(a);
    y.copy_(b);
    state.ResumeTiming();
    kernel(x, y);
  }
}

void GeluForward(benchmark::State& state) {
  at::Tensor h = at::randn({N, F});
  for (auto _ : state) benchmark::DoNotOptimize(kernels::gelu(h, kernels::GeluForm::tanh));
  bytes(state, 8.0 * N * F);
}

void GeluBackward(benchmark::State& state) {
  in_place(state, at::randn({N, F}), at::randn({N, F}),
           [](at::Tensor& h, at::Tensor& g) { kernels::gelu_backward(h, g, kernels::GeluForm::tanh); });
  bytes(state, 16.0 * N * F);
}

void SwigluForward(benchmark::State& state) {
  at::Tensor both = at::randn({N, 2 * F});
  for (auto _ : state) benchmark::DoNotOptimize(kernels::swiglu(both));
  bytes(state, 12.0 * N * F);
}

void SwigluBackward(benchmark::State& state) {
  in_place(state, at::randn({N, 2 * F}), at::randn({N, F}), kernels::swiglu_backward);
  bytes(state, 24.0 * N * F);
}

void RmsNormForward(benchmark::State& state) {
  at::Tensor x = at::randn({N, C}), w = at::ones({C});
  for (auto _ : state) benchmark::DoNotOptimize(kernels::rms_norm(x, w, 1e-5));
  bytes(state, 8.0 * N * C);
}

void RopeInPlace(benchmark::State& state) {
  at::Tensor x = at::randn({N, 3 * C});
  std::vector<int64_t> positions;
  for (int64_t n = 0; n < N; n++) positions.push_back(n % T);
  for (auto _ : state) kernels::rope_in_place(x, 2 * H, D, positions, {10000}, false);
  bytes(state, 8.0 * N * 2 * C);
}

void CrossEntropy(benchmark::State& state) {
  at::Tensor logits = at::randn({256, V}), targets = at::zeros({256}, at::kLong), loss = at::empty({256});
  for (auto _ : state) kernels::cross_entropy(logits, targets, loss, true, 1e-3);
  bytes(state, 8.0 * 256 * V);
}

void AdamwUpdate(benchmark::State& state) {
  constexpr int64_t n = 16 << 20;
  auto optimizer = make_optimizer(TrainSettings{});
  std::vector<float> value(n, 0.1f), gradient(n, 0.01f), m(n, 0.f), v(n, 0.f);
  ParameterFacts facts;
  facts.name = "w";
  facts.shape = {n / 1024, 1024};
  for (auto _ : state) optimizer->apply({&facts, 0, value, gradient, {m, v}}, {1e-4, 1, 1}, {});
  bytes(state, 28.0 * n);
}

BENCHMARK(Copy)->UseRealTime();
BENCHMARK(Product)->UseRealTime();
BENCHMARK(AttentionForward)->UseRealTime();
BENCHMARK(AttentionBackward)->UseRealTime();
BENCHMARK(GeluForward)->UseRealTime();
BENCHMARK(GeluBackward)->UseRealTime();
BENCHMARK(SwigluForward)->UseRealTime();
BENCHMARK(SwigluBackward)->UseRealTime();
BENCHMARK(RmsNormForward)->UseRealTime();
BENCHMARK(RopeInPlace)->UseRealTime();
BENCHMARK(CrossEntropy)->UseRealTime();
BENCHMARK(AdamwUpdate)->UseRealTime();

}  // namespace
}  // namespace megalith

int main(int count, char** arguments) {
  megalith::install_allocator();
  c10::InferenceMode no_graph;
  benchmark::Initialize(&count, arguments);
  benchmark::RunSpecifiedBenchmarks();
}
