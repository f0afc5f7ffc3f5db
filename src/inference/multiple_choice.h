// Answers multiple-choice questions by likelihood: the answer is the choice that is most likely after the context.
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

// Reads one question per line, or all from one JSON array: {"context": "...", "choices": ["...", ...], "answer": 0}. Ignores
// other fields. Throws a UserError with the line for anything else.
std::vector<Question> read_questions(const std::filesystem::path& file);

struct ChoiceScores {
  std::vector<double> log_likelihood;  // by choice: sum over its tokens, nats
  std::vector<int64_t> bytes, tokens;  // by choice; bytes do not include the joint
};

struct ChoiceEvaluation {
  std::vector<ChoiceScores> questions;
  // Share of questions whose right choice has the greatest log-likelihood: in total, per byte, per token.
  double accuracy = 0, accuracy_per_byte = 0, accuracy_per_token = 0;
};

// Puts `joint` between context and choice, unless there is white space already or no context. Cuts off the beginning of a
// context that is too long for the model.
ChoiceEvaluation evaluate_choices(Engine& engine, const Tokenizer& tokenizer, const std::vector<Question>& questions,
                                  const std::string& joint);

}  // namespace megalith
