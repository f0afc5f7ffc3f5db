// Chooses the next token from logits. The rules and their order are those of Hugging Face's generation: repetition penalty,
// temperature, top-k, top-p.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace megalith {

struct SamplingSettings {
  double temperature = 1.0;         // 0: always the likeliest
  int64_t top_k = 0;                // only the k likeliest (and tokens as likely as the last of them); 0: all
  double top_p = 1.0;               // smallest set of likeliest tokens with this probability
  double repetition_penalty = 1.0;  // tokens that came before: positive logits divided by it, negative ones multiplied
};

struct Candidate {
  int64_t id = 0;
  double probability = 0;
};

// Returns the candidates to draw from. Their probabilities add up to 1. `history`: all ids until now, prompt included. The
// order is likeliest first if top-k or top-p sorts them, else by id.
std::vector<Candidate> candidates(std::span<const float> logits, std::span<const int64_t> history,
                                  const SamplingSettings& settings);

// Returns the id of the chosen token. `draw` is uniform in [0, 1).
int64_t sample_token(std::span<const float> logits, std::span<const int64_t> history, const SamplingSettings& settings,
                     double draw);

}  // namespace megalith
