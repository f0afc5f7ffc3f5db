// Text from a model, one token after the other, for one prompt or many at once.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "inference/sampling.h"
#include "text/tokenizer.h"

namespace megalith {

struct GenerateSettings {
  int64_t tokens = 100;           // at most, for each prompt
  SamplingSettings sampling;
  std::vector<std::string> stop;  // text ends before the first of them
  uint64_t seed = 1;
};

enum class GenerationEnd { tokens, end_token, stop, interrupted };
std::string_view name(GenerationEnd end);

struct Generated {
  std::string text;     // what follows the prompt
  int64_t tokens = 0;   // made for it
  GenerationEnd end = GenerationEnd::tokens;
};

struct GenerateHooks {
  std::function<void(size_t prompt, const std::string& piece)> show;  // text as it comes
  std::function<bool()> interrupted;                                  // asked before every token
};

// Each result is the one its prompt gets alone. An empty prompt begins a document. Where the context is full, the text
// goes on from the second half of it, and a warning says so once.
std::vector<Generated> generate(Engine& engine, const Tokenizer& tokenizer, const std::vector<std::string>& prompts,
                                const GenerateSettings& settings, const GenerateHooks& hooks = {});

}  // namespace megalith
