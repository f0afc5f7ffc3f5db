// Measures how well a model predicts a text.
#pragma once
#include <string>
#include <vector>

#include "engine/engine.h"
#include "text/tokenizer.h"

namespace megalith {

struct Evaluation {
  double loss = 0;            // mean over the predicted tokens, nats
  double perplexity = 0;
  double bits_per_byte = 0;   // per byte of the text, so that tokenizers can be compared
  int64_t tokens = 0;         // number of predicted tokens
  int64_t bytes = 0;          // length of the text
};

// Evaluates windows of `window` tokens (0: the context). Each window begins `stride` tokens after the previous one (0: they
// do not overlap). Every token except the first is predicted once, from the tokens before it in its window.
Evaluation evaluate_text(Engine& engine, const Tokenizer& tokenizer, const std::vector<std::string>& files, int64_t window,
                         int64_t stride);

}  // namespace megalith
