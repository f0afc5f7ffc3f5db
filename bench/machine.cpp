// What this machine can do, measured while the benchmark runs: peak of fused multiply-adds, matrix products in a
// model's shapes, memory bandwidth. Prints one JSON object for every line of its input.
// machine HIDDEN FFN VOCAB TOKENS THREADS
#include <ATen/Parallel.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Enough independent sums to hide the latency of a multiply-add on two units, and few enough for the registers: 12 of 32,
// or of 16 where vectors have half the length.
constexpr int kSums = 12;
template <int kBytes>
inline __attribute__((always_inline)) float sums_of(int64_t rounds) {
  typedef float Lanes __attribute__((vector_size(kBytes)));
  Lanes sums[kSums], factor, term;
  for (size_t i = 0; i < kBytes / sizeof(float); i++) factor[i] = 0.999f, term[i] = 0.001f;
  for (auto& sum : sums) sum = term;
  for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 12
    for (auto& sum : sums) sum = sum * factor + term;
  float total = 0;
  for (auto& sum : sums) total += sum[0];
  return total;
}
__attribute__((target("arch=x86-64-v4"), optimize("O3"), noinline)) float sums_64(int64_t n) { return sums_of<64>(n); }
__attribute__((target("arch=x86-64-v3"), optimize("O3"), noinline)) float sums_32(int64_t n) { return sums_of<32>(n); }
__attribute__((optimize("O3"), noinline)) float sums_16(int64_t n) { return sums_of<16>(n); }

double peak_flops(int threads) {
  constexpr int64_t kRounds = 4'000'000;
  const auto [sums, bytes] = __builtin_cpu_supports("x86-64-v4")   ? std::pair(sums_64, 64)
                             : __builtin_cpu_supports("x86-64-v3") ? std::pair(sums_32, 32)
                                                                   : std::pair(sums_16, 16);
  std::vector<float> kept(static_cast<size_t>(threads));
  const double s = seconds_of([&, sums = sums] {
    std::vector<std::thread> all;
    for (float& keep : kept) all.emplace_back([&keep, sums] { keep = sums(kRounds); });
    for (auto& thread : all) thread.join();
  });
  return 2.0 * kSums * static_cast<double>(bytes / sizeof(float)) * kRounds * threads / s;
}

struct Product {
  int64_t m, n, k;
};

// Of all the products of one step: forward, and backward's two.
double product_flops(const std::vector<Product>& products) {
  double flop = 0, seconds = 0;
  for (const Product& p : products) {
    at::Tensor a = at::ones({p.m, p.k}), b = at::ones({p.k, p.n}), c = at::empty({p.m, p.n});
    at::mm_out(c, a, b);
    double best = 1e9;
    for (int i = 0; i < 3; i++) best = std::min(best, seconds_of([&] { at::mm_out(c, a, b); }));
    flop += 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
    seconds += best;
  }
  return flop / seconds;
}

double bandwidth() {
  at::Tensor a = at::ones({32 << 20}), b = at::ones({32 << 20}), c = at::empty({32 << 20});
  double best = 1e9;
  for (int i = 0; i < 4; i++) best = std::min(best, seconds_of([&] { at::add_out(c, a, b); }));
  return 3.0 * 4.0 * (32 << 20) / best;
}

}  // namespace

int main(int count, char** argument) {
  if (count != 6) return std::cerr << "usage: machine HIDDEN FFN VOCAB TOKENS THREADS\n", 2;
  c10::InferenceMode no_graph;
  const int64_t C = std::stoll(argument[1]), F = std::stoll(argument[2]), V = std::stoll(argument[3]);
  const int64_t N = std::stoll(argument[4]);
  const int threads = std::stoi(argument[5]);
  at::set_num_threads(threads);
  std::vector<Product> products;
  for (auto [from, to] : {std::pair(C, 3 * C), {C, C}, {C, F}, {F, C}, {C, V}})
    for (const Product& p : {Product{N, to, from}, Product{N, from, to}, Product{from, to, N}}) products.push_back(p);
  std::cout << R"({"ready": true})" << std::endl;
  for (std::string line; std::getline(std::cin, line);)
    std::cout << fmt::format(R"({{"peak_flops": {}, "product_flops": {}, "bandwidth": {}}})", peak_flops(threads),
                             product_flops(products), bandwidth())
              << std::endl;
  return 0;
}
