#include "inference/embedder.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "data/objectives.h"
#include "inference/evaluation_batches.h"

namespace megalith {
namespace {

constexpr int64_t kTextTokensAtOnce = 4096;

}  // namespace

void divide_by_length(std::span<float> vector) {
  double squares = 0;
  for (float x : vector) squares += static_cast<double>(x) * x;
  const auto factor = static_cast<float>(1 / std::max(std::sqrt(squares), 1e-12));
  for (float& x : vector) x *= factor;
}

Embedder::Embedder(LoadedModel& model, SentenceForm form)
    : model_(model), form_(form), special_after_(std::ssize(facts_of(*model.tokenizer).after)) {
  const int64_t most = model_.engine->shape().longest_sequence();
  form_.longest = form_.longest > 0 ? std::min(form_.longest, most) : most;
}

// With the special tokens that the tokenizer puts around a text. Cuts off the end of the text, not those after it.
std::vector<int64_t> Embedder::tokens_of(const std::string& text) {
  const std::vector<TokenId> ids = model_.tokenizer->encode(text, /*add_special=*/true);
  std::vector<int64_t> tokens(ids.begin(), ids.end());
  const int64_t over = std::ssize(tokens) - form_.longest;
  if (over > 0) {
    tokens.erase(tokens.end() - special_after_ - over, tokens.end() - special_after_);
    cut_off_++;
  }
  if (tokens.empty()) tokens.push_back(model_.tokenizer->end_token().value_or(0));  // an empty text
  check_ids(tokens, model_.engine->shape().vocab);
  return tokens;
}

std::vector<float> Embedder::embed(std::span<const std::string> texts) {
  std::vector<std::vector<int64_t>> tokens;
  for (const std::string& text : texts) tokens.push_back(tokens_of(text));
  std::vector<size_t> order(texts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](size_t i) { return tokens[i].size(); });
  std::vector<float> vectors(texts.size() * static_cast<size_t>(width()));
  for (size_t first = 0; first < order.size();) {
    const auto length = std::ssize(tokens[order[first]]);  // the longest of its batch
    const size_t count = std::min(order.size() - first, static_cast<size_t>(std::max<int64_t>(1, kTextTokensAtOnce / length)));
    Batch batch{.sequences = static_cast<int64_t>(count), .length = length};
    for (size_t i = first; i < first + count; i++) {
      std::vector<int64_t> row = tokens[order[i]];
      batch.tokens.push_back(std::ssize(row));
      row.resize(static_cast<size_t>(length), 0);
      batch.ids.insert(batch.ids.end(), row.begin(), row.end());
    }
    const std::vector<float> found = model_.engine->representations(batch);
    for (size_t i = 0; i < count; i++) {
      const auto to = vectors.begin() + static_cast<ptrdiff_t>(order[first + i]) * width();
      std::copy_n(found.begin() + static_cast<ptrdiff_t>(i) * width(), width(), to);
      if (form_.unit_length) divide_by_length({to, static_cast<size_t>(width())});
    }
    first += count;
  }
  return vectors;
}

EmbeddingModel load_embedding_model(const std::filesystem::path& path) {
  EmbeddingModel loaded{.model = load_model(path, HeadKind::representation)};
  if (!loaded.model.tokenizer) refuse_without_tokenizer(loaded.model.folder);
  const auto form = read_sentence_form(loaded.model.folder);
  loaded.form_is_known = form.has_value();
  loaded.form = form.value_or(SentenceForm{});
  return loaded;
}

}  // namespace megalith
