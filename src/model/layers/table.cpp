#include "model/layers/table.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "model/positions.h"
#include "model/tensor_ops.h"

namespace megalith {
namespace {

// to[place(n)] += from[n] for all n in order. The columns are split over the threads, so every sum has a fixed order.
template <class Place>
void add_rows(const at::Tensor& to_XC, const at::Tensor& from_NC, int64_t rows, const Place& place) {
  at::Tensor from = from_NC.to(to_XC.scalar_type()).contiguous();
  const int64_t width = from.size(1);
  AT_DISPATCH_FLOATING_TYPES(to_XC.scalar_type(), "add_rows", [&] {
    scalar_t* to = to_XC.mutable_data_ptr<scalar_t>();
    const scalar_t* source = from.const_data_ptr<scalar_t>();
    at::parallel_for(0, width, 64, [&](int64_t begin, int64_t end) {
      for (int64_t n = 0; n < rows; n++) {
        scalar_t* t = to + place(n) * width;
        const scalar_t* f = source + n * width;
        for (int64_t i = begin; i < end; i++) t[i] += f[i];
      }
    });
  });
}

// True if this rank has all rows of whole sequences, at positions that count from 0.
bool all_in_order(const Pass& pass) {
  return !pass.document_begin_N.defined() && !pass.cache && pass.runs.empty() && pass.rows() == pass.tokens();
}

}  // namespace

void TableGradient::add(const Weight& table, const at::Tensor& ids_N, const at::Tensor& g_NC) {
  const int64_t n = ids_N.numel(), width = g_NC.size(1), before = static_cast<int64_t>(ids_.size());
  const int64_t* ids = ids_N.const_data_ptr<int64_t>();
  if (!aside_) return add_rows(table.grad, g_NC, n, [&](int64_t i) { return ids[i]; });
  place_.resize(static_cast<size_t>(table.grad.size(0)), -1);
  for (int64_t i = 0; i < n; i++) {
    if (place_[ids[i]] >= 0) continue;
    place_[ids[i]] = static_cast<int32_t>(ids_.size());
    ids_.push_back(ids[i]);
  }
  const auto wanted = static_cast<int64_t>(ids_.size());
  if (!rows_.defined() || rows_.size(0) < wanted) {
    int64_t capacity = std::min(table.grad.size(0), std::max(wanted, 2 * before));
    at::Tensor grown = tensor::empty({capacity, width}, table.grad.options());
    if (before > 0) grown.narrow(0, 0, before).copy_(rows_.narrow(0, 0, before));
    rows_ = grown;
  }
  if (wanted > before) rows_.narrow(0, before, wanted - before).zero_();
  add_rows(rows_, g_NC, n, [&](int64_t i) { return place_[ids[i]]; });
}

void TableGradient::fold(const Weight& table) {
  if (ids_.empty()) return;
  add_rows(table.grad, rows_, static_cast<int64_t>(ids_.size()), [&](int64_t i) { return ids_[i]; });
  for (int64_t id : ids_) place_[id] = -1;
  ids_.clear();
  rows_.reset();
}

at::Tensor TokenTable::forward(const Pass& pass) const {
  if (!shares_.ranks) return tensor::embedding(weight.value, pass.ids_N);
  const at::Tensor ids_N = pass.ids_N.sub(first_id_), inside_N = ids_N.clamp(0, weight.value.size(0) - 1);
  at::Tensor x_NC = tensor::embedding(weight.value, inside_N);
  x_NC.masked_fill_(ids_N.ne(inside_N).unsqueeze(-1), 0);
  return shares_.reduce_scatter(std::move(x_NC));
}

void TokenTable::backward(const at::Tensor& g_SC, const Pass& pass) {
  if (!shares_.ranks) return gradient_.add(weight, pass.ids_N, g_SC);
  const at::Tensor ids_N = pass.ids_N.sub(first_id_);
  const at::Tensor mine = ids_N.ge(0).logical_and(ids_N.lt(weight.grad.size(0))).nonzero().squeeze(-1);
  const at::Tensor g_NC = shares_.all_gather(g_SC, pass.tokens());
  gradient_.add(weight, ids_N.index_select(0, mine), g_NC.index_select(0, mine));
}

void add_positions(const Weight& positions, at::Tensor& x_NC, const Pass& pass) {
  if (!all_in_order(pass)) {
    x_NC.add_(tensor::embedding(positions.value, tensor::from_values(positions_of(pass)).narrow(0, pass.first_row, pass.rows())));
  } else {  // all sequences use the same rows of the table
    x_NC.view({pass.sequences, pass.length, x_NC.size(1)})
        .add_(positions.value.narrow(0, 0, pass.length));
  }
}

void add_position_gradient(const Weight& positions, const at::Tensor& g_NC, const Pass& pass) {
  if (!all_in_order(pass)) {
    const std::vector<int64_t> place = positions_of(pass);
    add_rows(positions.grad, g_NC, pass.rows(),
             [&](int64_t n) { return place[static_cast<size_t>(pass.first_row + n)]; });
  } else {
    at::Tensor g_BTC = g_NC.view({pass.sequences, pass.length, g_NC.size(1)});
    positions.grad.narrow(0, 0, pass.length).add_(g_BTC.sum({0}, false, positions.grad.scalar_type()));
  }
}

}  // namespace megalith
