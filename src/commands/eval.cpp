#include <nlohmann/json.hpp>

#include "commands/commands.h"
#include "commands/loaded_model.h"
#include "inference/evaluate.h"
#include "inference/multiple_choice.h"
#include "inference/similarity.h"

namespace megalith {
namespace {

void evaluate_on_text(LoadedModel& model, const EvalArguments& a, const CommandContext& context, nlohmann::json& out) {
  Evaluation e = evaluate_text(*model.engine, *model.tokenizer, a.files, a.window, a.stride);
  print(context, fmt::format("loss {:.4f}  perplexity {:.3f}  bits per byte {:.4f}  ({} tokens, {} bytes)\n", e.loss,
                             e.perplexity, e.bits_per_byte, e.tokens, e.bytes));
  out.update({{"loss", e.loss}, {"perplexity", e.perplexity}, {"bits_per_byte", e.bits_per_byte}, {"tokens", e.tokens},
              {"bytes", e.bytes}});
}

void evaluate_on_choices(LoadedModel& model, const EvalArguments& a, const std::vector<Question>& questions,
                         const CommandContext& context, nlohmann::json& out) {
  ChoiceEvaluation e = evaluate_choices(*model.engine, *model.tokenizer, questions, a.joint);
  print(context, fmt::format("accuracy {:.2f}%  by bytes {:.2f}%  by tokens {:.2f}%  ({} questions)\n", 100 * e.accuracy,
                             100 * e.accuracy_per_byte, 100 * e.accuracy_per_token, questions.size()));
  nlohmann::json likelihoods = nlohmann::json::array();
  for (const ChoiceScores& scores : e.questions) likelihoods.push_back(scores.log_likelihood);
  out.update({{"questions", questions.size()},
              {"accuracy", e.accuracy},
              {"accuracy_per_byte", e.accuracy_per_byte},
              {"accuracy_per_token", e.accuracy_per_token},
              {"log_likelihoods", likelihoods}});
}

void evaluate_vectors(const EvalArguments& a, const std::vector<ScoredPair>& pairs,
                      const std::vector<QueryAndPositive>& queries, const CommandContext& context, nlohmann::json& out) {
  EmbeddingModel loaded = load_embedding_model(a.path);
  Embedder embedder(loaded.model, loaded.form);
  if (!pairs.empty()) {
    const double correlation = evaluate_pairs(embedder, pairs);
    print(context, fmt::format("rank correlation {:.4f}  ({} pairs)\n", correlation, pairs.size()));
    out.update({{"pairs", pairs.size()}, {"rank_correlation", correlation}});
  }
  if (queries.empty()) return;
  const Retrieval r = evaluate_retrieval(embedder, queries);
  print(context, fmt::format("recall at 1 {:.4f}  at 5 {:.4f}  at 10 {:.4f}  mean reciprocal rank {:.4f}  ({} queries, {} "
                             "candidates)\n",
                             r.recall_at_1, r.recall_at_5, r.recall_at_10, r.reciprocal_rank, queries.size(), r.candidates));
  out.update({{"queries", queries.size()},
              {"candidates", r.candidates},
              {"recall_at_1", r.recall_at_1},
              {"recall_at_5", r.recall_at_5},
              {"recall_at_10", r.recall_at_10},
              {"mean_reciprocal_rank", r.reciprocal_rank}});
}

}  // namespace

CommandResult run_eval(const CommandContext& context, const EvalArguments& a) {
  std::vector<Question> questions;  // read first, to report mistakes before loading a large model
  if (!a.choices.empty()) questions = read_questions(a.choices);
  const auto pairs = a.pairs.empty() ? std::vector<ScoredPair>() : read_scored_pairs(a.pairs);
  const auto queries = a.retrieval.empty() ? std::vector<QueryAndPositive>() : read_queries(a.retrieval);
  nlohmann::json out = nlohmann::json::object();
  if (!pairs.empty() || !queries.empty()) evaluate_vectors(a, pairs, queries, context, out);
  if (a.files.empty() && a.choices.empty()) return {ExitCode::done, out};
  LoadedModel model = load_with_tokenizer(a.path);
  if (!a.files.empty()) evaluate_on_text(model, a, context, out);
  if (!a.choices.empty()) evaluate_on_choices(model, a, questions, context, out);
  return {ExitCode::done, out};
}

}  // namespace megalith
