#include "model/layers/experts.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sigmoid.h>

#include "base/error.h"
#include "model/kernels/expert_rows.h"
#include "model/layers/router_input.h"
#include "model/routing/router.h"

namespace megalith {
namespace {

at::ScalarType wide_type(at::ScalarType type) { return type == at::kDouble ? at::kDouble : at::kFloat; }

template <class Work>
decltype(auto) in_its_type(const at::Tensor& x, const Work& work) {
  return x.scalar_type() == at::kDouble ? work(double{}) : work(float{});
}

template <class Real>
at::Tensor to_tensor(const std::vector<Real>& values, at::IntArrayRef shape, const at::Tensor& like) {
  at::Tensor out = at::empty(shape, like.options());
  std::copy(values.begin(), values.end(), out.mutable_data_ptr<Real>());
  return out;
}

uint64_t fingerprint(std::span<const int64_t> begin, std::span<const int64_t> token) {
  uint64_t mixed = 0xCBF29CE484222325ull;
  for (std::span<const int64_t> all : {begin, token})
    for (int64_t number : all) mixed = (mixed ^ static_cast<uint64_t>(number)) * 0x100000001B3ull;
  return mixed;
}

}  // namespace

struct ExpertFeedForward::Decision {
  std::vector<int64_t> begin, token, token_begin, token_rows;  // as in Routing
  at::Tensor gate_R;
  std::vector<int64_t> load;
};

at::Tensor SharedExpert::weights(const at::Tensor& x_NC) const {
  return at::sigmoid(weight.forward(x_NC).view(-1).to(wide_type(x_NC.scalar_type())));
}

at::Tensor SharedExpert::forward(const at::Tensor& x_NC, Tape* tape, const at::Tensor& onto_NC) const {
  at::Tensor gate_up_N2F = gate_up.forward(x_NC);
  at::Tensor y_NC = down.forward(kernels::weighted_swiglu(gate_up_N2F, weights(x_NC)), onto_NC);
  if (tape) tape->keep(std::move(gate_up_N2F));
  return y_NC;
}

at::Tensor SharedExpert::backward(const at::Tensor& g_NC, const at::Tensor& x_NC, Tape& tape) const {
  at::Tensor gate_up_N2F = tape.take(), g_NF = down.input_gradient(g_NC), weight_N = weights(x_NC);
  at::Tensor g_weight_N = kernels::weighted_swiglu_backward(gate_up_N2F, g_NF, weight_N);
  down.add_gradients(g_NF, g_NC);
  g_NF.reset();
  gate_up.add_gradients(x_NC, gate_up_N2F);
  at::Tensor gx_NC = gate_up.input_gradient(gate_up_N2F);
  const at::Tensor g_N1 = (g_weight_N * weight_N * (1 - weight_N)).to(x_NC.scalar_type()).unsqueeze(1);
  weight.add_gradients(x_NC, g_N1);
  return gx_NC.add_(weight.input_gradient(g_N1));
}

Linear ExpertFeedForward::wide_router(const at::Tensor& like) const {
  return {{router.weight.value.to(wide_type(like.scalar_type())), router.weight.grad}, {}};
}

at::Tensor ExpertFeedForward::router_input(const at::Tensor& x_NC, const Pass& pass) const {
  const at::Tensor wide = x_NC.to(wide_type(x_NC.scalar_type()));
  return experts.jitter > 0 && pass.explores ? jittered(wide, experts.jitter, layer, pass) : wide;
}

at::Tensor ExpertFeedForward::logits(const at::Tensor& x_NC, const Pass& pass) const {
  return wide_router(x_NC).forward(router_input(x_NC, pass));
}

ExpertFeedForward::Decision ExpertFeedForward::decide(const at::Tensor& logits_NE, const Pass& pass) const {
  return in_its_type(logits_NE, [&](auto real) {
    using Real = decltype(real);
    Routing<Real> r = route(router_input_of<Real>(experts, logits_NE, bias.value, layer, pass));
    Decision d{std::move(r.begin), std::move(r.token), std::move(r.token_begin), std::move(r.token_rows),
               to_tensor(r.gate, {std::ssize(r.gate)}, logits_NE), std::move(r.load)};
    if (!pass.routing) return d;
    LayerRouting& record = pass.routing->at(static_cast<size_t>(layer));
    const uint64_t now = fingerprint(d.begin, d.token);
    MEGALITH_ASSERT(record.tokens == 0 || record.fingerprint == now, "layer {}: a token changed its expert", layer);
    const int64_t tokens = logits_NE.size(0);
    record = {tokens, tokens * experts.top_k, r.dropped, r.aux, r.z, r.entropy, d.load, now};
    return d;
  });
}

at::Tensor ExpertFeedForward::forward(const at::Tensor& x_NC, const Pass& pass, Tape* tape, const at::Tensor& onto_NC) const {
  const at::Tensor start_NC = shared ? shared.forward(x_NC, tape, onto_NC) : onto_NC;
  at::Tensor logits_NE = logits(x_NC, pass);
  const Decision d = decide(logits_NE, pass);
  at::Tensor gate_up_R2F = gate_up.forward(kernels::gather_rows(x_NC, d.token), d.begin);
  at::Tensor y_RC = down.forward(kernels::weighted_swiglu(gate_up_R2F, d.gate_R), d.begin);
  if (tape) {
    tape->keep(std::move(gate_up_R2F));
    tape->keep(logits_NE.view(-1));  // in one row: never packed
  }
  return kernels::sum_rows(y_RC, d.token_begin, d.token_rows, start_NC);
}

void ExpertFeedForward::remake(const at::Tensor& x_NC, const Pass& pass, Tape& tape) const {
  if (shared) shared.remake(x_NC, tape);
  at::Tensor logits_NE = logits(x_NC, pass);
  const Decision d = decide(logits_NE, pass);
  tape.keep(gate_up.forward(kernels::gather_rows(x_NC, d.token), d.begin));
  tape.keep(logits_NE.view(-1));
}

at::Tensor ExpertFeedForward::backward(const at::Tensor& g_NC, const at::Tensor& x_NC, const Pass& pass, Tape& tape) const {
  const at::Tensor logits_NE = tape.take().view({x_NC.size(0), -1});
  at::Tensor gate_up_R2F = tape.take();
  const Decision d = decide(logits_NE, pass);
  at::Tensor g_gate_R;
  {
    const at::Tensor g_RC = kernels::gather_rows(g_NC, d.token);
    at::Tensor g_RF = down.input_gradient(g_RC, d.begin);
    g_gate_R = kernels::weighted_swiglu_backward(gate_up_R2F, g_RF, d.gate_R);
    down.add_gradients(g_RF, g_RC, d.begin);
  }
  gate_up.add_gradients(kernels::gather_rows(x_NC, d.token), gate_up_R2F, d.begin);
  at::Tensor gx_RC = gate_up.input_gradient(gate_up_R2F, d.begin);
  gate_up_R2F.reset();
  at::Tensor gx_NC = kernels::sum_rows(gx_RC, d.token_begin, d.token_rows);
  gx_RC.reset();
  gx_NC.add_(router_backward(g_gate_R, logits_NE, d, x_NC, pass));
  return shared ? gx_NC.add_(shared.backward(g_NC, x_NC, tape)) : gx_NC;
}

at::Tensor ExpertFeedForward::router_backward(const at::Tensor& g_gate_R, const at::Tensor& logits_NE, const Decision& d,
                                              const at::Tensor& x_NC, const Pass& pass) const {
  const at::Tensor g_logits_NE = in_its_type(logits_NE, [&](auto real) {
    using Real = decltype(real);
    Routing<Real> r;
    r.begin = d.begin;
    r.token = d.token;
    const std::span<const Real> g_gate(g_gate_R.const_data_ptr<Real>(), static_cast<size_t>(g_gate_R.numel()));
    // Of all tokens of the step that pass this layer.
    const double each = pass.balance_scale / static_cast<double>(pass.length);
    return to_tensor(route_backward(router_input_of<Real>(experts, logits_NE, bias.value, layer, pass), r, g_gate, each),
                     logits_NE.sizes(), logits_NE);
  });
  if (bias.grad.defined()) {
    // Above 0 where more came than to the others on average; whole numbers, so that no order of adding up changes it.
    at::Tensor more = at::empty({experts.count}, at::kFloat);
    auto* counted = more.mutable_data_ptr<float>();
    for (int64_t e = 0; e < experts.count; e++)
      counted[e] = static_cast<float>(d.load[static_cast<size_t>(e)] * experts.count - x_NC.size(0) * experts.top_k);
    bias.grad.add_(more);
  }
  const Linear wide = wide_router(x_NC);
  at::Tensor gx_NC = wide.input_gradient(g_logits_NE);
  wide.add_gradients(router_input(x_NC, pass), g_logits_NE);
  if (experts.jitter > 0 && pass.explores) gx_NC = jittered(gx_NC, experts.jitter, layer, pass);
  return gx_NC.to(x_NC.scalar_type());
}

}  // namespace megalith
