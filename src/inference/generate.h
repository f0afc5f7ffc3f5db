// Generates text with a model, token by token, for one prompt or many at once.
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
  std::string text;     // the text after the prompt
  int64_t tokens = 0;   // generated
  GenerationEnd end = GenerationEnd::tokens;
};

struct GenerateHooks {
  std::function<void(size_t prompt, const std::string& piece)> show;  // called with every new piece of text
  std::function<bool()> interrupted;                                  // called before every token
};

// Throws UserError if the model cannot continue text.
void check_generates(const ModelShape& shape);

// Each result is the same as if its prompt were alone. An empty prompt begins a document. If the context is full, the text
// continues from the second half of the context, and a warning says so once.
std::vector<Generated> generate(Engine& engine, const Tokenizer& tokenizer, const std::vector<std::string>& prompts,
                                const GenerateSettings& settings, const GenerateHooks& hooks = {});

}  // namespace megalith
