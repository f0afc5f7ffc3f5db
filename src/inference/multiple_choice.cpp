#include "inference/multiple_choice.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/json.h"
#include "inference/evaluation_batches.h"
#include "text/json_records.h"

namespace megalith {
namespace {

using nlohmann::json;

Question parse_question(const json& object, const std::string& where) {
  auto refuse = [&](const char* key, const std::string& expected) {
    throw UserError({where, key, expected, object.contains(key) ? shown(object[key]) : "no such field", ""});
  };
  if (!object.is_object())
    throw UserError({where, "", "a JSON object with context, choices and answer", shown(object), ""});
  Question q;
  q.where = where;
  q.context = text_in(object, "context", where);
  const json choices = object.value("choices", json());
  auto is_choice = [](const json& c) { return c.is_string() && !c.get_ref<const std::string&>().empty(); };
  if (!choices.is_array() || choices.empty() || !std::all_of(choices.begin(), choices.end(), is_choice))
    refuse("choices", "a list of texts that are not empty");
  q.choices = choices.get<std::vector<std::string>>();
  const json answer = object.value("answer", json());
  if (!answer.is_number_integer() || answer < 0 || answer >= q.choices.size())
    refuse("answer", fmt::format("the index of a choice, from 0 to {}", q.choices.size() - 1));
  q.answer = answer.get<int64_t>();
  return q;
}

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

// Returns the ids of a context and a choice, and the index of the first id of the choice.
ScoredSequence sequence_of(const Tokenizer& tokenizer, const Question& q, const std::string& choice,
                           const std::string& joint, const ModelShape& shape) {
  const int64_t longest = shape.longest_sequence();
  std::string context = q.context, rest = choice;
  if (!context.empty() && !is_space(context.back()) && !is_space(rest.front())) rest = joint + rest;
  // Move white space from the end of the context to the choice: tokenizers put spaces in front of words.
  size_t end = context.size();
  while (end > 0 && is_space(context[end - 1])) end--;
  rest = context.substr(end) + rest;
  context.resize(end);
  std::vector<TokenId> whole = tokenizer.encode(context + rest, /*add_special=*/true);
  int64_t before = std::ssize(tokenizer.encode(context, /*add_special=*/true));
  if (before == 0 || whole.empty()) {
    auto first = tokenizer.begin_token() ? tokenizer.begin_token() : tokenizer.end_token();
    if (!first)
      throw UserError({q.where, "context", "some text", "an empty text",
                       "add text: the tokenizer has no token that begins a document"});
    whole.insert(whole.begin(), *first);
    before = 1;
  }
  const int64_t size = std::ssize(whole);
  if (size <= before)
    throw UserError({q.where, "choices", "text that adds a token to the context", shown(choice), ""});
  const int64_t cut = std::max<int64_t>(0, size - (longest + 1));
  if (cut > 0 && shape.window_shortens())
    throw UserError({q.where, "context",
                     fmt::format("at most the model's sliding_window of {} tokens, including a choice", longest),
                     fmt::format("{}", size - 1), "attention with a sliding window is not supported; shorten the question"});
  if (cut >= before)
    throw UserError({q.where, "choices", fmt::format("choices shorter than the context of {} tokens", longest),
                     fmt::format("a choice of {} tokens", size - before), ""});
  return {{whole.begin() + cut, whole.end()}, before - cut, 0};
}

template <class Score>
double accuracy(const std::vector<Question>& questions, const std::vector<ChoiceScores>& scores, const Score& score) {
  int64_t right = 0;
  for (size_t i = 0; i < questions.size(); i++) {
    size_t best = 0;
    for (size_t c = 1; c < questions[i].choices.size(); c++)
      if (score(scores[i], c) > score(scores[i], best)) best = c;
    right += static_cast<int64_t>(best) == questions[i].answer;
  }
  return static_cast<double>(right) / static_cast<double>(questions.size());
}

}  // namespace

std::vector<Question> read_questions(const std::filesystem::path& file) {
  std::vector<Question> questions;
  for_each_json_record(file, [&](const json& object, const std::string& where) {
    questions.push_back(parse_question(object, where));
  });
  if (questions.empty()) throw UserError({file.string(), "--choices", "at least one question", "none", ""});
  return questions;
}

ChoiceEvaluation evaluate_choices(Engine& engine, const Tokenizer& tokenizer, const std::vector<Question>& questions,
                                  const std::string& joint) {
  const ModelShape& shape = engine.shape();
  check_predicts_next_token(shape);
  ChoiceEvaluation result;
  std::vector<ScoredSequence> sequences;
  std::vector<double*> places;
  result.questions.resize(questions.size());
  for (size_t i = 0; i < questions.size(); i++) {
    ChoiceScores& scores = result.questions[i];
    scores.log_likelihood.resize(questions[i].choices.size());
    for (size_t c = 0; c < questions[i].choices.size(); c++) {
      const std::string& choice = questions[i].choices[c];
      ScoredSequence sequence = sequence_of(tokenizer, questions[i], choice, joint, shape);
      check_ids(sequence.ids, shape.vocab);
      scores.bytes.push_back(std::ssize(choice));
      scores.tokens.push_back(std::ssize(sequence.ids) - sequence.first_target);
      sequence.tag = std::ssize(places);
      places.push_back(&scores.log_likelihood[c]);
      sequences.push_back(std::move(sequence));
    }
  }
  // Put similar lengths together, so that little padding is needed.
  std::stable_sort(sequences.begin(), sequences.end(), [](const ScoredSequence& a, const ScoredSequence& b) {
    return a.ids.size() > b.ids.size();
  });
  EvaluationBatches batches(engine,
                            [&](const ScoredSequence& s, double loss) { *places[static_cast<size_t>(s.tag)] = -loss; });
  for (ScoredSequence& sequence : sequences) batches.add(std::move(sequence));
  batches.finish();
  result.accuracy =
      accuracy(questions, result.questions, [](const ChoiceScores& s, size_t c) { return s.log_likelihood[c]; });
  result.accuracy_per_byte = accuracy(questions, result.questions, [](const ChoiceScores& s, size_t c) {
    return s.log_likelihood[c] / static_cast<double>(s.bytes[c]);
  });
  result.accuracy_per_token = accuracy(questions, result.questions, [](const ChoiceScores& s, size_t c) {
    return s.log_likelihood[c] / static_cast<double>(s.tokens[c]);
  });
  return result;
}

}  // namespace megalith
