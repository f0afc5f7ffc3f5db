// Multiple-choice questions answered by likelihood: the choice that the model finds likeliest after the context.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "text/tokenizer.h"

namespace megalith {

struct Question {
  std::string context;               // may be empty
  std::vector<std::string> choices;  // at least one, none empty
  int64_t answer = 0;                // index of the right one
  std::string where;                 // file:line
};

// One a line, or in one JSON array: {"context": "...", "choices": ["...", ...], "answer": 0}. Other fields are passed over.
// UserError naming the place for everything else.
std::vector<Question> read_questions(const std::filesystem::path& file);

struct ChoiceScores {
  std::vector<double> log_likelihood;  // of each choice's tokens, nats
  std::vector<int64_t> bytes, tokens;  // of each choice, what joins it to the context left out of the bytes
};

struct ChoiceEvaluation {
  std::vector<ChoiceScores> questions;
  // Share of questions whose right choice has the greatest log-likelihood: as it is, a byte, a token.
  double accuracy = 0, accuracy_per_byte = 0, accuracy_per_token = 0;
};

// Context and choice are joined by `joint`, unless there is white space already or no context. A context too long for the
// model loses its beginning.
ChoiceEvaluation evaluate_choices(Engine& engine, const Tokenizer& tokenizer, const std::vector<Question>& questions,
                                  const std::string& joint);

}  // namespace megalith
