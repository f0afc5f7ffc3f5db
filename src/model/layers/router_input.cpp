#include "model/layers/router_input.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include "base/error.h"
#include "base/normals.h"
#include "base/philox.h"
#include "model/local_rows.h"
#include "model/tensor_ops.h"

namespace megalith {
namespace {

Philox stream(const Pass& pass, RandomUse use, int64_t layer) {
  return Philox(pass.seed, use, static_cast<uint64_t>(layer), static_cast<uint64_t>(pass.step));
}

uint64_t first_row(const Pass& pass) { return static_cast<uint64_t>(pass.first_sequence * pass.length); }

// Calls use(index, number) for elements [begin, end) of a stream of numbers that come in fours. `index` counts from `begin`.
template <class Four, class Use>
void for_each_number(uint64_t begin, uint64_t end, const Four& four, const Use& use) {
  auto numbers = four(begin / 4);
  for (uint64_t i = begin; i < end; i++) {
    if (i % 4 == 0) numbers = four(i / 4);
    use(i - begin, numbers[i % 4]);
  }
}

}  // namespace

template <class Real>
RouterInput<Real> router_input_of(const Experts& experts, const at::Tensor& logits_NE, const at::Tensor& bias_E,
                                  int64_t layer, const Pass& pass) {
  MEGALITH_ASSERT(pass.sequences * pass.length == logits_NE.size(0), "the rows are not whole sequences");
  RouterInput<Real> in;
  in.experts = &experts;
  in.tokens = logits_NE.size(0);
  in.logits = {logits_NE.const_data_ptr<Real>(), static_cast<size_t>(logits_NE.numel())};
  in.groups = token_groups(experts, pass.sequences, pass.length);
  in.unlimited = pass.cache != nullptr;  // capacities need the length of a sequence, which still grows
  if (bias_E.defined()) {
    const at::Tensor bias = bias_E.to(at::kFloat).contiguous();
    in.bias.assign(bias.const_data_ptr<float>(), bias.const_data_ptr<float>() + bias.numel());
  }
  if (!pass.explores) return in;
  const uint64_t first = first_row(pass), rows = static_cast<uint64_t>(in.tokens), E = static_cast<uint64_t>(experts.count);
  if (experts.router == Router::noisy) {
    in.noise.resize(rows * E);
    fill_normals(stream(pass, RandomUse::router_noise, layer), first * E, in.noise);
  }
  if (experts.router == Router::gshard) {
    in.lots.resize(rows);
    const Philox random = stream(pass, RandomUse::router_lots, layer);
    for_each_number(first, first + rows, [&](uint64_t block) { return random.block(block); },
                    [&](uint64_t i, uint32_t bits) { in.lots[i] = Philox::to_uniform(bits); });
  }
  return in;
}

at::Tensor jittered(const at::Tensor& x_NC, double jitter, int64_t layer, const Pass& pass) {
  const at::Tensor x = x_NC.contiguous();
  at::Tensor out = tensor::empty_like(x);
  const Philox random = stream(pass, RandomUse::router_jitter, layer);
  const auto C = static_cast<uint64_t>(x.size(1));
  Pass all = pass;  // x has the rows of all ranks of the tensor axis
  all.first_row = 0;
  all.last_row = -1;
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "jittered", [&] {
    const auto* from = x.const_data_ptr<scalar_t>();
    auto* to = out.mutable_data_ptr<scalar_t>();
    for_each_row_run(all, [&](int64_t here, int64_t row, int64_t rows) {
      at::parallel_for(0, rows, 16, [&](int64_t begin, int64_t end) {
        const uint64_t at = static_cast<uint64_t>(here + begin) * C;
        for_each_number(static_cast<uint64_t>(row + begin) * C, static_cast<uint64_t>(row + end) * C,
                        [&](uint64_t block) { return random.block(block); },
                        [&](uint64_t i, uint32_t bits) {
                          const double factor = 1 + jitter * (2 * static_cast<double>(Philox::to_uniform(bits)) - 1);
                          to[at + i] = static_cast<scalar_t>(from[at + i] * factor);
                        });
      });
    });
  });
  return out;
}

template RouterInput<float> router_input_of(const Experts&, const at::Tensor&, const at::Tensor&, int64_t, const Pass&);
template RouterInput<double> router_input_of(const Experts&, const at::Tensor&, const at::Tensor&, int64_t, const Pass&);

}  // namespace megalith
