#include "inference/generate.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/philox.h"
#include "families/registry.h"
#include "inference/stop_strings.h"
#include "inference/token_stream.h"
#include "text/stream_decoder.h"

namespace megalith {
namespace {

std::vector<int64_t> prompt_ids(const Tokenizer& tokenizer, const std::string& prompt, int64_t vocab) {
  std::vector<TokenId> ids = tokenizer.encode(prompt, /*add_special=*/true);
  if (ids.empty()) {
    // There is no text to continue, so begin a new document.
    auto first = tokenizer.begin_token() ? tokenizer.begin_token() : tokenizer.end_token();
    if (!first)
      throw UserError({"", "--prompt", "some text", "an empty prompt",
                       "add text: the tokenizer has no token that begins a document"});
    ids.push_back(*first);
  }
  for (TokenId id : ids)
    if (id >= vocab)
      throw UserError({"", "tokenizer", fmt::format("ids below the model's vocabulary of {}", vocab), std::to_string(id),
                       "use the tokenizer of this model"});
  return {ids.begin(), ids.end()};
}

void warn_of_full_context(const ModelShape& shape) {
  if (!shape.window_shortens()) {
    log::warn("the context of {} tokens is full: generation continues from its second half", shape.context);
    return;
  }
  log::warn("the text is longer than the model's sliding_window of {} tokens: generation continues from the last {} "
            "tokens, and the text differs from that of Hugging Face transformers; use a smaller --tokens to avoid this",
            shape.window, std::max<int64_t>(1, shape.window / 2));
}

// Turns the ids of one sequence into text.
struct Writer {
  Writer(const Tokenizer& tokenizer, const std::vector<int64_t>& prompt, std::vector<std::string> stop)
      : decoder(tokenizer), stops(std::move(stop)) {
    decoder.skip(std::vector<TokenId>(prompt.begin(), prompt.end()));
  }
  StreamDecoder decoder;
  StopStrings stops;
  Generated result;
  bool done = false;
};

// At most TokenStream::kMostSequences prompts.
std::vector<Generated> generate_group(Engine& engine, const Tokenizer& tokenizer, std::span<const std::string> prompts,
                                      size_t first, const GenerateSettings& settings, const GenerateHooks& hooks) {
  const ModelShape& shape = engine.shape();
  // Rows of the table beyond the tokenizer's ids (padding) are never chosen.
  const auto usable = static_cast<size_t>(std::min(shape.vocab, tokenizer.vocab_size()));
  TokenStream stream(engine);
  std::vector<Writer> writers;
  for (const std::string& prompt : prompts) {
    std::vector<int64_t> ids = prompt_ids(tokenizer, prompt, shape.vocab);
    writers.emplace_back(tokenizer, ids, settings.stop);
    if (settings.tokens > 0) stream.begin(std::move(ids));
  }
  auto out = [&](size_t i, const std::string& piece) {
    if (piece.empty()) return;
    writers[i].result.text += piece;
    if (hooks.show) hooks.show(first + i, piece);
  };
  auto finish = [&](size_t i, GenerationEnd end) {
    Writer& w = writers[i];
    out(i, w.stops.feed(w.decoder.finish()));
    out(i, w.stops.finish());
    w.result.end = w.stops.stopped() ? GenerationEnd::stop : end;
    w.done = true;
  };
  const Philox random(settings.seed, RandomUse::sampling, 0);
  bool warned = false;
  for (int64_t n = 0; n < settings.tokens; n++) {
    const double draw = Philox::to_uniform(random.block(static_cast<uint64_t>(n))[0]);
    const bool interrupted = hooks.interrupted && hooks.interrupted();
    std::vector<int64_t> alive, chosen;
    for (size_t i = 0; i < writers.size(); i++) {
      Writer& w = writers[i];
      if (w.done) continue;
      if (interrupted) {
        finish(i, GenerationEnd::interrupted);
        continue;
      }
      const auto s = static_cast<int64_t>(i);
      int64_t id = sample_token(stream.logits(s).first(usable), stream.ids(s), settings.sampling, draw);
      if (tokenizer.end_token() && id == *tokenizer.end_token()) {
        finish(i, GenerationEnd::end_token);
        continue;
      }
      w.result.tokens++;
      out(i, w.stops.feed(w.decoder.feed(static_cast<TokenId>(id))));
      if (w.stops.stopped()) {
        finish(i, GenerationEnd::stop);
        continue;
      }
      alive.push_back(s);
      chosen.push_back(id);
    }
    if (alive.empty()) break;
    if (n + 1 < settings.tokens) stream.grow(alive, chosen);
    if (stream.context_was_full() && !std::exchange(warned, true))
      warn_of_full_context(shape);
  }
  std::vector<Generated> results;
  for (size_t i = 0; i < writers.size(); i++) {
    if (!writers[i].done) finish(i, GenerationEnd::tokens);
    results.push_back(std::move(writers[i].result));
  }
  return results;
}

}  // namespace

std::string_view name(GenerationEnd end) {
  switch (end) {
    case GenerationEnd::tokens: return "tokens";
    case GenerationEnd::end_token: return "end of text";
    case GenerationEnd::stop: return "stop string";
    case GenerationEnd::interrupted: break;
  }
  return "interrupted";
}

void check_generates(const ModelShape& shape) {
  if (shape.family->bidirectional)
    throw UserError({"", "model", next_token_models(), std::string(shape.family->name),
                     "an encoder fills in masked tokens and cannot continue text"});
  if (shape.experts.router == Router::expert_choice && shape.experts.any())
    throw UserError({"", "model.experts.router", "a router in which tokens choose experts", "expert_choice",
                     "generation with expert_choice is not supported"});
}

std::vector<Generated> generate(Engine& engine, const Tokenizer& tokenizer, const std::vector<std::string>& prompts,
                                const GenerateSettings& settings, const GenerateHooks& hooks) {
  check_generates(engine.shape());
  std::vector<Generated> results;
  for (size_t begin = 0; begin < prompts.size(); begin += TokenStream::kMostSequences) {
    size_t count = std::min<size_t>(TokenStream::kMostSequences, prompts.size() - begin);
    for (Generated& each :
         generate_group(engine, tokenizer, std::span(prompts).subspan(begin, count), begin, settings, hooks))
      results.push_back(std::move(each));
  }
  return results;
}

}  // namespace megalith
