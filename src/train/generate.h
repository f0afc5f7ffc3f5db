// Text from a model, one token after the other.
#pragma once
#include <functional>
#include <string>

#include "engine/engine.h"
#include "text/tokenizer.h"

namespace megalith {

struct GenerateSettings {
  std::string prompt;
  int64_t tokens = 100;
  double temperature = 1.0;  // 0: always the likeliest
  int64_t top_k = 0;         // 0: all
  double top_p = 1.0;        // smallest set of likeliest tokens with this probability
  uint64_t seed = 1;
};

// Calls `show` with text as it comes; returns prompt and text. Stops at the tokenizer's end token.
std::string generate(Engine& engine, const Tokenizer& tokenizer, const GenerateSettings& settings,
                     const std::function<void(const std::string&)>& show = {});

// The token chosen from one row of logits; `draw` is uniform in [0, 1).
int64_t sample_token(std::span<const float> logits, const GenerateSettings& settings, double draw);

}  // namespace megalith
