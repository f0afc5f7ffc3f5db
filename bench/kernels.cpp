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
#include "model/kernels/cached_attention.h"
#include "model/kernels/cross_entropy.h"
#include "model/kernels/dropout.h"
#include "model/kernels/few_rows.h"
#include "model/kernels/gelu.h"
#include "model/kernels/layer_norm.h"
#include "model/kernels/product.h"
#include "model/kernels/rms_norm.h"
#include "model/kernels/rope.h"
#include "model/kernels/swiglu.h"
#include "model/packed_rows.h"
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

void LinearForward(benchmark::State& state) {
  at::Tensor a = at::randn({N, F}), b = at::randn({C, F}), bias = at::randn({C}), onto = at::randn({N, C});
  for (auto _ : state) benchmark::DoNotOptimize(kernels::product(a, b.t(), bias, onto));
  flop(state, 2.0 * N * C * F);
}

void WeightGradient(benchmark::State& state) {
  at::Tensor x = at::randn({N, C}), g = at::randn({N, F}), sum = at::zeros({F, C});
  for (auto _ : state) kernels::product_added(g.t(), x, sum);
  flop(state, 2.0 * N * C * F);
}

void FewRows(benchmark::State& state) {
  at::Tensor x = at::randn({4, C}), w = at::randn({V, C});
  for (auto _ : state) benchmark::DoNotOptimize(kernels::few_rows_product(x, w, MatrixOrder::out_in, {}));
  bytes(state, 4.0 * V * C);
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
    kernels::attention_backward(x.g, {x.part(x.qkv, 0), x.part(x.qkv, 1), x.part(x.qkv, 2)}, {x.o, lse}, x.sight, {},
                                {x.part(x.g_qkv, 0), x.part(x.g_qkv, 1), x.part(x.g_qkv, 2)});
  flop(state, 5.0 * N * T * C);
}

void CachedAttention(benchmark::State& state) {
  constexpr int64_t keys = 1024;
  at::Tensor q = at::randn({H, 1, D}), k = at::randn({H, keys, D}), v = at::randn({H, keys, D}), out = at::empty({H, 1, D});
  for (auto _ : state) kernels::cached_attention(q, k, v, keys - 1, out);
  bytes(state, 8.0 * H * keys * D);
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

void LayerNormForward(benchmark::State& state) {
  at::Tensor x = at::randn({N, C}), w = at::ones({C}), b = at::zeros({C});
  for (auto _ : state) benchmark::DoNotOptimize(kernels::layer_norm(x, w, b, 1e-5));
  bytes(state, 8.0 * N * C);
}

void LayerNormBackward(benchmark::State& state) {
  at::Tensor x = at::randn({N, C}), g = at::randn({N, C}), w = at::ones({C}), b = at::zeros({C});
  const kernels::LayerNormed normed = kernels::layer_norm(x, w, b, 1e-5);
  for (auto _ : state) benchmark::DoNotOptimize(kernels::layer_norm_backward(g, x, normed.mean_N, normed.rstd_N, w, g));
  bytes(state, 16.0 * N * C);
}

void RmsNormForward(benchmark::State& state) {
  at::Tensor x = at::randn({N, C}), w = at::ones({C});
  for (auto _ : state) benchmark::DoNotOptimize(kernels::rms_norm(x, w, 1e-5));
  bytes(state, 8.0 * N * C);
}

void RmsNormBackward(benchmark::State& state) {
  at::Tensor x = at::randn({N, C}), g = at::randn({N, C}), w = at::ones({C});
  const at::Tensor rstd = std::get<1>(kernels::rms_norm(x, w, 1e-5));
  for (auto _ : state) benchmark::DoNotOptimize(kernels::rms_norm_backward(g, x, rstd, w, g));
  bytes(state, 16.0 * N * C);
}

void Dropout(benchmark::State& state) {
  at::Tensor x = at::ones({N, C});
  in_place(state, x, x, [](at::Tensor& y, at::Tensor&) { kernels::dropout_in_place(y, {.seed = 1, .probability = 0.1}); });
  bytes(state, 8.0 * N * C);
}

void PackInt8(benchmark::State& state) {
  at::Tensor x = at::randn({N, F});
  for (auto _ : state) benchmark::DoNotOptimize(pack_rows(x, Packing::int8));
  bytes(state, 5.0 * N * F);
}

void UnpackInt8(benchmark::State& state) {
  const PackedRows packed = pack_rows(at::randn({N, F}), Packing::int8);
  for (auto _ : state) benchmark::DoNotOptimize(unpack_rows(packed));
  bytes(state, 5.0 * N * F);
}

void RopeInPlace(benchmark::State& state) {
  at::Tensor x = at::randn({N, 3 * C});
  std::vector<int64_t> positions;
  for (int64_t n = 0; n < N; n++) positions.push_back(n % T);
  for (auto _ : state) kernels::rope_in_place(x, 2 * H, D, positions, {10000}, false);
  bytes(state, 8.0 * N * 2 * C);
}

void CrossEntropy(benchmark::State& state) {
  at::Tensor targets = at::zeros({256}, at::kLong);
  in_place(state, at::randn({256, V}), at::zeros({256}), [&](at::Tensor& logits, at::Tensor& loss) {
    kernels::cross_entropy(logits, targets, loss, true, 1e-3);
  });
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

void SumOfSquares(benchmark::State& state) {
  constexpr int64_t n = 32 << 20;
  const std::vector<float> values(n, 0.1f);
  for (auto _ : state) benchmark::DoNotOptimize(sum_of_squares(values));
  bytes(state, 4.0 * n);
}

BENCHMARK(Copy)->UseRealTime();
BENCHMARK(Product)->UseRealTime();
BENCHMARK(LinearForward)->UseRealTime();
BENCHMARK(WeightGradient)->UseRealTime();
BENCHMARK(FewRows)->UseRealTime();
BENCHMARK(AttentionForward)->UseRealTime();
BENCHMARK(AttentionBackward)->UseRealTime();
BENCHMARK(CachedAttention)->UseRealTime();
BENCHMARK(GeluForward)->UseRealTime();
BENCHMARK(GeluBackward)->UseRealTime();
BENCHMARK(SwigluForward)->UseRealTime();
BENCHMARK(SwigluBackward)->UseRealTime();
BENCHMARK(LayerNormForward)->UseRealTime();
BENCHMARK(LayerNormBackward)->UseRealTime();
BENCHMARK(RmsNormForward)->UseRealTime();
BENCHMARK(RmsNormBackward)->UseRealTime();
BENCHMARK(Dropout)->UseRealTime();
BENCHMARK(PackInt8)->UseRealTime();
BENCHMARK(UnpackInt8)->UseRealTime();
BENCHMARK(RopeInPlace)->UseRealTime();
BENCHMARK(CrossEntropy)->UseRealTime();
BENCHMARK(AdamwUpdate)->UseRealTime();
BENCHMARK(SumOfSquares)->UseRealTime();

}  // namespace
}  // namespace megalith

int main(int count, char** arguments) {
  megalith::install_allocator();
  c10::InferenceMode no_graph;
  benchmark::Initialize(&count, arguments);
  benchmark::RunSpecifiedBenchmarks();
}
