#include "model/layers/experts.h"

#include <utility>

#include "base/error.h"
#include "model/kernels/expert_rows.h"
#include "model/kernels/row_copies.h"
#include "model/layers/shadow_linear.h"
#include "model/layers/router_input.h"
#include "model/layers/sequence_parallel.h"
#include "model/routing/router.h"
#include "model/local_rows.h"
#include "model/tensor_ops.h"

namespace megalith {
namespace {

at::ScalarType wide_type(at::ScalarType type) { return type == at::kDouble ? at::kDouble : at::kFloat; }

template <class Work>
decltype(auto) in_its_type(const at::Tensor& x, const Work& work) {
  return x.scalar_type() == at::kDouble ? work(double{}) : work(float{});
}

template <class Real>
at::Tensor to_tensor(const std::vector<Real>& values, at::IntArrayRef shape, const at::Tensor& like) {
  at::Tensor out = tensor::empty(shape, like.options());
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
  std::vector<int64_t> begin, token, token_begin, token_rows;  // as in Routing, for this rank's tokens
  at::Tensor gate_R;
  std::vector<int64_t> load;                       // choices of all tokens, by expert
  std::vector<int64_t> whole_begin, whole_token;   // as in Routing, for all tokens
  std::vector<int64_t> rows;                       // this rank's rows among all rows; empty: all

  // Turns the routing of all tokens into the routing of this rank's tokens. `here`: for each of the N rows of this
  // rank, its index among the W rows of whole sequences, rising.
  void keep(std::span<const int64_t> here) {
    std::vector<int64_t> place(token_begin.size() - 1, -1), row_here(token.size(), -1);
    for (size_t n = 0; n < here.size(); n++) place[static_cast<size_t>(here[n])] = static_cast<int64_t>(n);
    const Decision all = std::exchange(*this, {});
    for (size_t e = 0; e + 1 < all.begin.size(); e++) {
      begin.push_back(std::ssize(token));
      for (int64_t row = all.begin[e]; row < all.begin[e + 1]; row++) {
        const int64_t at = place[static_cast<size_t>(all.token[static_cast<size_t>(row)])];
        if (at < 0) continue;
        row_here[static_cast<size_t>(row)] = std::ssize(token);
        token.push_back(at);
        rows.push_back(row);
      }
    }
    begin.push_back(std::ssize(token));
    for (int64_t n : here) {
      token_begin.push_back(std::ssize(token_rows));
      for (int64_t i = all.token_begin[static_cast<size_t>(n)]; i < all.token_begin[static_cast<size_t>(n) + 1]; i++)
        token_rows.push_back(row_here[static_cast<size_t>(all.token_rows[static_cast<size_t>(i)])]);
    }
    token_begin.push_back(std::ssize(token_rows));
    gate_R = kernels::gather_rows(all.gate_R.unsqueeze(1), rows).squeeze(1);
    load = all.load;
    whole_begin = all.begin;
    whole_token = all.token;
  }
};

at::Tensor SharedExpert::weights(const at::Tensor& x_NC) const {
  return weight.forward(x_NC).view(-1).to(wide_type(x_NC.scalar_type())).sigmoid();
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
  tape.weight_gradient([this, g_NF, g_NC] { down.add_gradients(g_NF, g_NC); });
  g_NF.reset();
  tape.weight_gradient([this, x_NC, gate_up_N2F] { gate_up.add_gradients(x_NC, gate_up_N2F); });
  at::Tensor gx_NC = gate_up.input_gradient(gate_up_N2F);
  const at::Tensor g_N1 = kernels::sigmoid_gradient(g_weight_N, weight_N).to(x_NC.scalar_type()).unsqueeze(1);
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
  const Exchanges by_context{.mesh = exchanges.mesh, .context = exchanges.context};
  return gather_whole(wide_router(x_NC).forward(router_input(x_NC, pass)), pass, by_context);
}

ExpertFeedForward::Decision ExpertFeedForward::decide(const at::Tensor& logits_WE, const Pass& pass) const {
  return in_its_type(logits_WE, [&](auto real) {
    using Real = decltype(real);
    Routing<Real> r = route(router_input_of<Real>(experts, logits_WE, bias.value, layer, pass));
    const uint64_t now = fingerprint(r.begin, r.token);
    Decision d{std::move(r.begin), std::move(r.token), std::move(r.token_begin), std::move(r.token_rows),
               to_tensor(r.gate, {std::ssize(r.gate)}, logits_WE), std::move(r.load), {}, {}, {}};
    if (!pass.runs.empty()) d.keep(rows_of_sequences(pass));
    if (!pass.routing) return d;
    LayerRouting& record = pass.routing->at(static_cast<size_t>(layer));
    MEGALITH_ASSERT(record.tokens == 0 || record.fingerprint == now, "layer {}: a token changed its expert", layer);
    const int64_t tokens = logits_WE.size(0);
    record = {tokens, tokens * experts.top_k, r.dropped, r.aux, r.z, r.entropy, d.load, now};
    return d;
  });
}

at::Tensor ExpertFeedForward::forward(const at::Tensor& x_NC, const Pass& pass, Tape* tape,
                                      const at::Tensor& onto_SC) const {
  // If ranks of the tensor axis sum their results, each rank adds the residual only to its share of the sum.
  const SequenceParallel shares{exchanges.tensor};
  const at::Tensor onto_NC = shares.ranks ? at::Tensor() : onto_SC;
  at::Tensor logits_WE = logits(x_NC, pass);
  const Decision d = decide(logits_WE, pass);
  const TokenDispatch way(exchanges.expert, d.begin);
  if (pass.experts) pass.experts->load_experts(layer, way.wanted());
  at::Tensor start_NC = onto_NC;
  TokenDispatch::Meanwhile meanwhile;
  if (shared) meanwhile = [&] { start_NC = shared.forward(x_NC, tape, onto_NC); };
  at::Tensor gate_up_H2F = ShadowLinear(way, gate_up).forward(way.dispatch(x_NC, d.token, meanwhile));
  at::Tensor y_HC = ShadowLinear(way, down).forward(kernels::weighted_swiglu(gate_up_H2F, way.dispatch(d.gate_R)));
  if (tape) {
    tape->keep(std::move(gate_up_H2F));
    tape->keep(logits_WE.view(-1));  // one-dimensional, so it is never packed
  }
  at::Tensor y_SC = shares.reduce_scatter(way.combine(std::move(y_HC), d.token_begin, d.token_rows, start_NC));
  return shares.ranks && onto_SC.defined() ? y_SC.add_(onto_SC) : y_SC;
}

void ExpertFeedForward::recompute(const at::Tensor& x_NC, const Pass& pass, Tape& tape) const {
  at::Tensor logits_WE = logits(x_NC, pass);
  const Decision d = decide(logits_WE, pass);
  const TokenDispatch way(exchanges.expert, d.begin);
  if (pass.experts) pass.experts->load_experts(layer, way.wanted());
  TokenDispatch::Meanwhile meanwhile;
  if (shared) meanwhile = [&] { shared.recompute(x_NC, tape); };
  tape.keep(ShadowLinear(way, gate_up).forward(way.dispatch(x_NC, d.token, meanwhile)));
  tape.keep(logits_WE.view(-1));
}

at::Tensor ExpertFeedForward::backward(const at::Tensor& g_NC, const at::Tensor& x_NC, const Pass& pass, Tape& tape) const {
  const at::Tensor logits_WE = tape.take().view({pass.sequences * pass.length, -1});
  at::Tensor gate_up_H2F = tape.take();
  const Decision d = decide(logits_WE, pass);
  const TokenDispatch way(exchanges.expert, d.begin);
  if (pass.experts) pass.experts->load_experts(layer, way.wanted());
  at::Tensor g_gate_R;
  {
    const at::Tensor g_HC = way.dispatch(g_NC, d.token);
    const ShadowLinear from(way, down);
    at::Tensor g_HF = from.input_gradient(g_HC);
    g_gate_R = way.combine(kernels::weighted_swiglu_backward(gate_up_H2F, g_HF, way.dispatch(d.gate_R)));
    tape.weight_gradient(from.gradients(g_HF, g_HC));
  }
  at::Tensor gx_HC;
  {
    const ShadowLinear to(way, gate_up);
    tape.weight_gradient(to.gradients(way.dispatch(x_NC, d.token), gate_up_H2F));
    gx_HC = to.input_gradient(gate_up_H2F);
  }
  gate_up_H2F.reset();
  at::Tensor others_NC;  // gradients from the router and the shared expert
  const auto others = [&] {
    others_NC = router_backward(g_gate_R, logits_WE, d, x_NC, pass);
    if (shared) others_NC.add_(shared.backward(g_NC, x_NC, tape));
  };
  return way.combine(std::move(gx_HC), d.token_begin, d.token_rows, {}, others).add_(others_NC);
}

at::Tensor ExpertFeedForward::router_backward(const at::Tensor& g_gate_R, const at::Tensor& logits_WE, const Decision& d,
                                              const at::Tensor& x_NC, const Pass& pass) const {
  const bool some = !pass.runs.empty();
  const at::Tensor g_logits_NE = in_its_type(logits_WE, [&](auto real) {
    using Real = decltype(real);
    Routing<Real> r;
    r.begin = some ? d.whole_begin : d.begin;
    r.token = some ? d.whole_token : d.token;
    std::span<const Real> g_gate(g_gate_R.const_data_ptr<Real>(), static_cast<size_t>(g_gate_R.numel()));
    std::vector<Real> of_all;  // 0 for tokens of other ranks: nothing on this rank depends on them
    if (some) {
      of_all.resize(r.token.size(), 0);
      for (size_t i = 0; i < d.rows.size(); i++) of_all[static_cast<size_t>(d.rows[i])] = g_gate[i];
      g_gate = of_all;
    }
    // The balancing losses are a mean over all tokens of the step that this layer processes. One tensor rank adds them.
    const double each = exchanges.mesh.coordinate(Axis::tensor) == 0 ? pass.balance_scale / static_cast<double>(pass.length) : 0;
    const at::Tensor g_logits_WE =
        to_tensor(route_backward(router_input_of<Real>(experts, logits_WE, bias.value, layer, pass), r, g_gate, each),
                  logits_WE.sizes(), logits_WE);
    return some ? kernels::gather_rows(g_logits_WE, rows_of_sequences(pass)) : g_logits_WE;
  });
  if (bias.grad.defined() && counts()) {
    // Above 0 if the expert got more tokens than the average. Whole numbers, so the order of summing does not matter.
    at::Tensor more = tensor::empty({experts.count}, at::kFloat);
    auto* counted = more.mutable_data_ptr<float>();
    for (int64_t e = 0; e < experts.count; e++)
      counted[e] = static_cast<float>(d.load[static_cast<size_t>(e)] * experts.count - logits_WE.size(0) * experts.top_k);
    bias.grad.add_(more);
  }
  const Linear wide = wide_router(x_NC);
  at::Tensor gx_NC = wide.input_gradient(g_logits_NE);
  wide.add_gradients(router_input(x_NC, pass), g_logits_NE);
  if (experts.jitter > 0 && pass.explores) gx_NC = jittered(gx_NC, experts.jitter, layer, pass);
  return gx_NC.to(x_NC.scalar_type());
}

}  // namespace megalith
