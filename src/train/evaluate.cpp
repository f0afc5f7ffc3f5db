#include "train/evaluate.h"

#include <cmath>

#include "base/error.h"
#include "text/corpus.h"

namespace megalith {

Evaluation evaluate_text(Engine& engine, const Tokenizer& tokenizer, const std::vector<std::string>& files, int64_t window,
                         int64_t stride) {
  const ModelShape& shape = engine.model().shape();
  if (shape.arch == Arch::bert)
    throw UserError({"", "model", "a model that predicts the next token (gpt2, llama)", "bert",
                     "perplexity is not defined for masked models"});
  if (window <= 0) window = shape.context;
  if (window > shape.context)
    throw UserError({"", "--window", fmt::format("at most the model's context of {}", shape.context), std::to_string(window), ""});
  if (stride <= 0) stride = window;
  if (stride > window)
    throw UserError({"", "--stride", fmt::format("at most the window of {}", window), std::to_string(stride),
                     "a larger one would leave tokens out"});
  Evaluation result;
  std::vector<int64_t> tokens;
  for_each_piece(expand_files(files), {}, [&](const DocumentPiece& piece) {
    result.bytes += static_cast<int64_t>(piece.text.size());
    for (TokenId id : tokenizer.encode(piece.text)) tokens.push_back(id);
    if (piece.last && tokenizer.end_token()) tokens.push_back(*tokenizer.end_token());
  });
  for (int64_t id : tokens)
    if (id >= shape.vocab)
      throw UserError({"", "tokenizer", fmt::format("ids below the model's vocabulary of {}", shape.vocab),
                       std::to_string(id), "model and tokenizer do not belong together"});
  const auto n = static_cast<int64_t>(tokens.size());
  if (n < 2) throw UserError({files.front(), "--data", "at least 2 tokens of text", std::to_string(n), ""});
  double sum = 0;
  int64_t predicted_until = 1;  // tokens before this one have been predicted (or are the first)
  for (int64_t begin = 0; predicted_until < n; begin += stride) {
    int64_t length = std::min(window, n - 1 - begin);
    Batch batch;
    batch.sequences = 1;
    batch.length = length;
    batch.ids.assign(tokens.begin() + begin, tokens.begin() + begin + length);
    batch.targets.assign(static_cast<size_t>(length), kNoTarget);
    for (int64_t t = std::max<int64_t>(0, predicted_until - 1 - begin); t < length; t++) batch.targets[t] = tokens[begin + t + 1];
    for (float loss : engine.losses(batch)) sum += loss;
    result.tokens += begin + length + 1 - predicted_until;
    predicted_until = begin + length + 1;
  }
  result.loss = sum / static_cast<double>(result.tokens);
  result.perplexity = std::exp(result.loss);
  result.bits_per_byte = sum / std::log(2.0) / static_cast<double>(std::max<int64_t>(result.bytes, 1));
  return result;
}

}  // namespace megalith
