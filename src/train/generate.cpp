#include "train/generate.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/philox.h"
#include "text/stream_decoder.h"

namespace megalith {

int64_t sample_token(std::span<const float> logits, const GenerateSettings& settings, double draw) {
  const auto likeliest = std::max_element(logits.begin(), logits.end()) - logits.begin();
  if (settings.temperature <= 0) return likeliest;
  std::vector<int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  size_t kept = settings.top_k > 0 ? std::min<size_t>(order.size(), static_cast<size_t>(settings.top_k)) : order.size();
  // Equal logits keep the lower id first, so that the result does not depend on the sort.
  std::partial_sort(order.begin(), order.begin() + static_cast<int64_t>(kept), order.end(), [&](int64_t a, int64_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  std::vector<double> weights(kept);
  double total = 0;
  for (size_t i = 0; i < kept; i++)
    total += weights[i] = std::exp((static_cast<double>(logits[order[i]]) - logits[likeliest]) / settings.temperature);
  if (settings.top_p < 1) {
    double sum = 0;
    size_t needed = 0;
    while (needed < kept && sum < settings.top_p * total) sum += weights[needed++];
    kept = std::max<size_t>(needed, 1);
    total = std::accumulate(weights.begin(), weights.begin() + static_cast<int64_t>(kept), 0.0);
  }
  double left = draw * total;
  for (size_t i = 0; i < kept; i++)
    if ((left -= weights[i]) < 0) return order[i];
  return order[kept - 1];
}

std::string generate(Engine& engine, const Tokenizer& tokenizer, const GenerateSettings& settings,
                     const std::function<void(const std::string&)>& show) {
  const ModelShape& shape = engine.model().shape();
  if (shape.arch == Arch::bert)
    throw UserError({"", "model", "a model that predicts the next token (gpt2, llama)", "bert",
                     "an encoder fills masks; it does not continue text"});
  std::vector<TokenId> prompt = tokenizer.encode(settings.prompt, /*add_special=*/true);
  if (prompt.empty()) {
    // Nothing to go on from: the token that separates documents begins a new one.
    auto first = tokenizer.begin_token() ? tokenizer.begin_token() : tokenizer.end_token();
    if (!first)
      throw UserError({"", "--prompt", "some text", "nothing", "this tokenizer has no token that begins a document"});
    prompt.push_back(*first);
  }
  std::vector<int64_t> history(prompt.begin(), prompt.end());
  for (int64_t id : history)
    if (id >= shape.vocab)
      throw UserError({"", "tokenizer", fmt::format("ids below the model's vocabulary of {}", shape.vocab),
                       std::to_string(id), "model and tokenizer do not belong together"});
  StreamDecoder decoder(tokenizer);
  decoder.skip(prompt);
  std::string text = settings.prompt;
  auto out = [&](const std::string& piece) {
    if (piece.empty()) return;
    text += piece;
    if (show) show(piece);
  };
  Philox random(settings.seed, RandomUse::sampling, 0);
  KeyValueCache cache;
  std::vector<int64_t> next = history;
  for (int64_t i = 0; i < settings.tokens; i++) {
    if (cache.positions + static_cast<int64_t>(next.size()) > shape.context) {
      // The context is full: go on from its second half.
      auto keep = std::min<int64_t>(static_cast<int64_t>(history.size()), std::max<int64_t>(1, shape.context / 2));
      cache = {};
      next.assign(history.end() - keep, history.end());
    }
    at::Tensor logits = engine.logits(next, 1, &cache, /*last_only=*/true).contiguous();
    // Rows of the table beyond the tokenizer's ids (padding) are never chosen.
    auto usable = static_cast<size_t>(std::min(shape.vocab, tokenizer.vocab_size()));
    auto block = random.block(static_cast<uint64_t>(i));
    int64_t id = sample_token({logits.const_data_ptr<float>(), usable}, settings, Philox::to_uniform(block[0]));
    if (tokenizer.end_token() && id == *tokenizer.end_token()) break;
    history.push_back(id);
    next = {id};
    out(decoder.feed(static_cast<TokenId>(id)));
  }
  out(decoder.finish());
  return text;
}

}  // namespace megalith
