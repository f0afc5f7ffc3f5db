#include "inference/sampling.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace megalith {
namespace {

std::vector<float> penalised(std::span<const float> logits, std::span<const int64_t> history, double penalty) {
  std::vector<float> result(logits.begin(), logits.end());
  const auto by = static_cast<float>(penalty);
  for (int64_t id : std::set<int64_t>(history.begin(), history.end()))
    if (id < std::ssize(result)) result[id] = result[id] < 0 ? result[id] * by : result[id] / by;
  return result;
}

bool likelier(const Candidate& a, const Candidate& b) {
  return a.probability != b.probability ? a.probability > b.probability : a.id < b.id;
}

void normalise(std::vector<Candidate>& all) {
  double total = 0;
  for (const Candidate& c : all) total += c.probability;
  for (Candidate& c : all) c.probability /= total;
}

void keep_top_k(std::vector<Candidate>& all, int64_t k) {
  if (k <= 0 || k >= std::ssize(all)) return;
  auto last = all.begin() + (k - 1);
  std::nth_element(all.begin(), last, all.end(), likelier);
  const double least = last->probability;
  std::erase_if(all, [&](const Candidate& c) { return c.probability < least; });
  std::sort(all.begin(), all.end(), likelier);
}

// Uses a heap, so that the many candidates that are removed are never sorted.
void keep_top_p(std::vector<Candidate>& all, double p) {
  if (p >= 1) return;
  auto below = [](const Candidate& a, const Candidate& b) { return likelier(b, a); };
  std::make_heap(all.begin(), all.end(), below);
  double sum = 0;
  auto end = all.end();
  do {
    std::pop_heap(all.begin(), end, below);
    sum += (--end)->probability;
  } while (sum < p && end != all.begin());
  all.erase(all.begin(), end);
  std::reverse(all.begin(), all.end());
}

}  // namespace

std::vector<Candidate> candidates(std::span<const float> logits, std::span<const int64_t> history,
                                  const SamplingSettings& settings) {
  std::vector<float> changed;
  if (settings.repetition_penalty != 1) logits = changed = penalised(logits, history, settings.repetition_penalty);
  const auto likeliest = std::max_element(logits.begin(), logits.end()) - logits.begin();
  if (settings.temperature <= 0) return {{likeliest, 1.0}};
  std::vector<Candidate> all(logits.size());
  const double top = logits[static_cast<size_t>(likeliest)];
  for (size_t i = 0; i < all.size(); i++)
    all[i] = {static_cast<int64_t>(i), std::exp((static_cast<double>(logits[i]) - top) / settings.temperature)};
  keep_top_k(all, settings.top_k);
  normalise(all);
  keep_top_p(all, settings.top_p);
  if (settings.top_p < 1) normalise(all);
  return all;
}

int64_t sample_token(std::span<const float> logits, std::span<const int64_t> history, const SamplingSettings& settings,
                     double draw) {
  const std::vector<Candidate> all = candidates(logits, history, settings);
  for (const Candidate& c : all)
    if ((draw -= c.probability) < 0) return c.id;
  return all.back().id;
}

}  // namespace megalith
