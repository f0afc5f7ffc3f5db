// Runs generation without text for the oracle scripts and the bench: JSON on stdin, JSON on stdout.
//   {"distribution": {"logits": [...], "history": [...], "temperature": 1, ...}}  probabilities by id
//   {"greedy": {"folder": "...", "ids": [[...], ...], "tokens": n}}               ids that follow, seconds of prompt and
//   rest
#include <ATen/Parallel.h>

#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json.h"
#include "inference/load_model.h"
#include "inference/sampling.h"
#include "inference/token_stream.h"
#include "memory/allocator.h"
#include "text/tokenizer.h"

using namespace megalith;
using nlohmann::json;

namespace {

SamplingSettings settings_of(const json& job) {
  return {job.value("temperature", 1.0), job.value("top_k", int64_t{0}), job.value("top_p", 1.0),
          job.value("repetition_penalty", 1.0)};
}

json distribution(const json& job) {
  auto logits = job.at("logits").get<std::vector<float>>();
  auto history = job.value("history", std::vector<int64_t>{});
  std::vector<double> probabilities(logits.size(), 0.0);
  for (const Candidate& c : candidates(logits, history, settings_of(job)))
    probabilities[static_cast<size_t>(c.id)] = c.probability;
  return probabilities;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

json greedy(const json& job) {
  if (job.contains("threads")) at::set_num_threads(job["threads"].get<int>());
  // Keeps the model of the previous job, because a benchmark runs the same model many times.
  static std::string folder;
  static std::optional<LoadedModel> model;
  if (folder != job.at("folder")) {
    folder = job.at("folder").get<std::string>();
    model.emplace(load_model(folder));
  }
  auto prompts = job.at("ids").get<std::vector<std::vector<int64_t>>>();
  json runs = json::array();
  for (int64_t run = 0; run < job.value("runs", int64_t{1}); run++) {
    TokenStream stream(*model->engine);
    auto begin = std::chrono::steady_clock::now();
    std::vector<int64_t> all;
    for (const std::vector<int64_t>& prompt : prompts) all.push_back(stream.begin(prompt));
    const double prompt_seconds = seconds_since(begin);
    begin = std::chrono::steady_clock::now();
    std::vector<std::vector<int64_t>> made(prompts.size());
    for (int64_t n = 0; n < job.at("tokens").get<int64_t>(); n++) {
      std::vector<int64_t> next;
      for (int64_t s : all)
        next.push_back(sample_token(stream.logits(s), stream.ids(s), settings_of({{"temperature", 0}}), 0));
      for (size_t i = 0; i < next.size(); i++) made[i].push_back(next[i]);
      if (n + 1 < job.at("tokens").get<int64_t>()) stream.grow(all, next);
    }
    runs.push_back({{"ids", made}, {"prompt_seconds", prompt_seconds}, {"seconds", seconds_since(begin)}});
  }
  return runs;
}

}  // namespace

int main() {
  install_allocator();
  std::string line;
  // A job a line, so that a bench can interleave us with others.
  while (std::getline(std::cin, line)) {
    json job = parse_json(line);
    std::cout << print_json(job.contains("distribution") ? distribution(job["distribution"]) : greedy(job["greedy"]))
              << std::endl;
  }
}
