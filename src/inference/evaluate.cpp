#include "inference/evaluate.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/log.h"
#include "inference/evaluation_batches.h"
#include "text/corpus.h"

namespace megalith {
namespace {

std::vector<int64_t> tokens_of(const Tokenizer& tokenizer, const std::vector<std::string>& files, int64_t& bytes) {
  std::vector<int64_t> tokens;
  for_each_piece(expand_files(files), {}, [&](const DocumentPiece& piece) {
    bytes += static_cast<int64_t>(piece.text.size());
    for (TokenId id : piece.first ? tokenizer.encode(piece.text) : tokenizer.encode_continued(piece.text))
      tokens.push_back(id);
    if (piece.last && tokenizer.end_token()) tokens.push_back(*tokenizer.end_token());
  });
  return tokens;
}

}  // namespace

Evaluation evaluate_text(Engine& engine, const Tokenizer& tokenizer, const std::vector<std::string>& files, int64_t window,
                         int64_t stride) {
  const ModelShape& shape = engine.shape();
  check_predicts_next_token(shape);
  const int64_t most = shape.longest_sequence();
  if (window > most)
    throw UserError({"", "--window",
                     fmt::format("at most the model's {} of {}", shape.window_shortens() ? "sliding_window" : "context", most),
                     std::to_string(window),
                     shape.window_shortens() ? "attention with a sliding window is not supported" : ""});
  if (window <= 0 && shape.window_shortens())
    log::warn("evaluating windows of {0} tokens: attention with a sliding window is not supported, and the model's "
              "sliding_window ({0}) is shorter than its context ({1}). Compare only with results for windows of {0} tokens",
              most, shape.context);
  if (window <= 0) window = most;
  if (stride <= 0) stride = window;
  if (stride > window)
    throw UserError({"", "--stride", fmt::format("at most the window of {}", window), std::to_string(stride),
                     "use a smaller stride: a larger one skips tokens"});
  Evaluation result;
  const std::vector<int64_t> tokens = tokens_of(tokenizer, files, result.bytes);
  check_ids(tokens, shape.vocab);
  const auto n = std::ssize(tokens);
  if (n < 2) throw UserError({files.front(), "--data", "at least 2 tokens of text", std::to_string(n), ""});

  double sum = 0;
  EvaluationBatches batches(engine, [&](const ScoredSequence&, double loss) { sum += loss; });
  int64_t predicted_until = 1;  // tokens before this one have been predicted (or are the first)
  for (int64_t begin = 0; predicted_until < n; begin += stride) {
    const int64_t length = std::min(window, n - 1 - begin);
    ScoredSequence sequence;
    sequence.ids.assign(tokens.begin() + begin, tokens.begin() + begin + length + 1);
    sequence.first_target = std::max<int64_t>(1, predicted_until - begin);
    batches.add(std::move(sequence));
    result.tokens += begin + length + 1 - predicted_until;
    predicted_until = begin + length + 1;
  }
  batches.finish();
  result.loss = sum / static_cast<double>(result.tokens);
  result.perplexity = std::exp(result.loss);
  result.bits_per_byte = sum / std::log(2.0) / static_cast<double>(std::max<int64_t>(result.bytes, 1));
  return result;
}

}  // namespace megalith
