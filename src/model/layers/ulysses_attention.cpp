// Ulysses attention over sequences that are cut. An all-to-all exchanges positions for heads, so that each rank has some
// heads of whole sequences. Another all-to-all undoes this.

#include "model/layers/attention.h"

#include "layout/cuts.h"
#include "model/tensor_ops.h"

namespace megalith {
namespace {

// Converts between rows of some positions with all heads, and rows of all positions with some heads. `groups`: the numbers
// of heads that are side by side in the first form (q, k, v). Each group is cut.
class Turning {
 public:
  Turning(Exchange& ranks, const Pass& pass, std::vector<int64_t> groups, int64_t head_dim)
      : ranks_(ranks), pass_(pass), groups_(std::move(groups)), head_dim_(head_dim) {
    for (int64_t heads : groups_) all_heads_ += heads;
    heads_ = all_heads_ / ranks.size();
    for (int64_t r = 0; r < ranks.size(); r++) {
      lengths_.push_back(context_length(pass.length, ranks.size(), r));
      const int64_t row = pass.sequences * heads_ * head_dim;
      cuts_here_.push_back(cuts_here_.back() + row * pass.length_here());
      cuts_whole_.push_back(cuts_whole_.back() + row * lengths_.back());
    }
  }

  at::Tensor to_heads(const at::Tensor& x_NX) const {
    const at::Tensor x = x_NX.view({pass_.sequences, pass_.length_here(), all_heads_, head_dim_});
    at::Tensor send = tensor::empty({cuts_here_.back()}, x.options());
    at::Tensor receive = tensor::empty({cuts_whole_.back()}, x.options());
    for (int64_t r = 0; r < ranks_.size(); r++)
      for_heads_of(r, x, [&](const at::Tensor& there, int64_t first, int64_t heads) {
        piece(send, cuts_here_, r, pass_.length_here()).narrow(2, first, heads).copy_(there);
      });
    ranks_.all_to_all(send, cuts_here_, receive, cuts_whole_);
    send.reset();
    at::Tensor whole = tensor::empty({pass_.sequences, pass_.length, heads_, head_dim_}, x.options());
    for (int64_t r = 0; r < ranks_.size(); r++)
      for_runs_of(r, whole, [&](at::Tensor rows, int64_t first, int64_t count) {
        rows.copy_(piece(receive, cuts_whole_, r, lengths_[static_cast<size_t>(r)]).narrow(1, first, count));
      });
    return whole.view({pass_.sequences * pass_.length, heads_ * head_dim_});
  }

  at::Tensor to_rows(const at::Tensor& y_MX) const {
    const at::Tensor whole = y_MX.view({pass_.sequences, pass_.length, heads_, head_dim_});
    at::Tensor send = tensor::empty({cuts_whole_.back()}, whole.options());
    at::Tensor receive = tensor::empty({cuts_here_.back()}, whole.options());
    for (int64_t r = 0; r < ranks_.size(); r++)
      for_runs_of(r, whole, [&](const at::Tensor& rows, int64_t first, int64_t count) {
        piece(send, cuts_whole_, r, lengths_[static_cast<size_t>(r)]).narrow(1, first, count).copy_(rows);
      });
    ranks_.all_to_all(send, cuts_whole_, receive, cuts_here_);
    send.reset();
    at::Tensor x = tensor::empty({pass_.sequences, pass_.length_here(), all_heads_, head_dim_}, whole.options());
    for (int64_t r = 0; r < ranks_.size(); r++)
      for_heads_of(r, x, [&](at::Tensor there, int64_t first, int64_t heads) {
        there.copy_(piece(receive, cuts_here_, r, pass_.length_here()).narrow(2, first, heads));
      });
    return x.view({pass_.tokens(), all_heads_ * head_dim_});
  }

 private:
  // The part that is sent to rank r or received from it, as [B, length, heads, D].
  at::Tensor piece(const at::Tensor& flat, const std::vector<int64_t>& cuts, int64_t r, int64_t length) const {
    const auto at = static_cast<size_t>(r);
    return flat.narrow(0, cuts[at], cuts[at + 1] - cuts[at]).view({pass_.sequences, length, heads_, head_dim_});
  }
  // Calls work(view, first, heads) for each group of the heads of x that rank r has. `first` is the index of the group's
  // first head among the heads of rank r.
  template <class Work>
  void for_heads_of(int64_t r, const at::Tensor& x, const Work& work) const {
    int64_t group_begin = 0, first = 0;
    for (int64_t group : groups_) {
      const int64_t heads = group / ranks_.size();
      work(x.narrow(2, group_begin + r * heads, heads), first, heads);
      group_begin += group;
      first += heads;
    }
  }
  // Calls work(view, first, count) for each run of positions that rank r holds. `first` is the index of the run's first
  // position among the positions of rank r.
  template <class Work>
  void for_runs_of(int64_t r, const at::Tensor& whole, const Work& work) const {
    int64_t first = 0;
    for (const PositionRange& run : context_ranges(pass_.length, ranks_.size(), r)) {
      work(whole.narrow(1, run.begin, run.size()), first, run.size());
      first += run.size();
    }
  }

  Exchange& ranks_;
  const Pass& pass_;
  std::vector<int64_t> groups_, lengths_;
  int64_t head_dim_, all_heads_ = 0, heads_ = 0;
  std::vector<int64_t> cuts_here_{0}, cuts_whole_{0};  // elements by rank: this rank's positions, each rank's positions
};

// The attention that a rank computes between the exchanges: some heads, whole sequences.
Attention some_heads(const Attention& all) {
  Attention some = all;
  const int64_t n = all.context->size();
  some.heads /= n;
  some.kv_heads /= n;
  some.all_heads = all.all_heads ? all.all_heads : all.heads;
  some.first_head += all.context->rank() * some.heads;
  some.context = nullptr;
  return some;
}
Pass whole_sequences(Pass pass) {
  pass.runs.clear();
  return pass;
}

}  // namespace

at::Tensor Attention::forward_ulysses(at::Tensor qkv_NX, const Pass& pass, Tape* tape) const {
  at::Tensor qkv_heads = Turning(*context, pass, {heads, kv_heads, kv_heads}, head_dim).to_heads(qkv_NX);
  qkv_NX.reset();
  at::Tensor o_heads = some_heads(*this).forward(std::move(qkv_heads), whole_sequences(pass), tape);
  at::Tensor output_NC = Turning(*context, pass, {heads}, head_dim).to_rows(o_heads);
  if (tape) {
    tape->take();  // the output in the other form
    tape->keep(output_NC);
  }
  return output_NC;
}

at::Tensor Attention::backward_ulysses(const at::Tensor& g_NC, const at::Tensor& output_NC, const Pass& pass,
                                       Tape& tape) const {
  const Turning turning(*context, pass, {heads}, head_dim);
  const at::Tensor g_heads = turning.to_heads(g_NC), o_heads = turning.to_heads(output_NC);
  const at::Tensor g_qkv = some_heads(*this).backward(g_heads, o_heads, whole_sequences(pass), tape);
  return Turning(*context, pass, {heads, kv_heads, kv_heads}, head_dim).to_rows(g_qkv);
}

}  // namespace megalith
