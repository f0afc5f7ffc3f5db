#include "data/objectives.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/philox.h"
#include "data/batch.h"

namespace megalith {
namespace {

// Every position predicts the next token.
class CausalObjective final : public TrainingObjective {
 public:
  CausalObjective() : TrainingObjective(Objective::causal) {}
  void write(std::span<const int64_t> tokens, const SampleKey&, const SequenceSlot& out) const override {
    std::copy_n(tokens.begin(), out.ids.size(), out.ids.begin());
    std::copy_n(tokens.begin() + 1, out.targets.size(), out.targets.begin());
  }
};

// A prefix of P positions that see each other, followed by a causal rest. Position p predicts token p + 1. Positions
// before P - 1 already see their target, so they have none. Position P - 1 predicts token P, the first outside the
// prefix. P is uniform in [1, T - 1], so there are always at least two targets.
class PrefixObjective final : public TrainingObjective {
 public:
  PrefixObjective() : TrainingObjective(Objective::prefix) {}
  void write(std::span<const int64_t> tokens, const SampleKey& key, const SequenceSlot& out) const override {
    const auto length = static_cast<int64_t>(out.ids.size());
    Philox random(key.seed, RandomUse::prefix_length, key.sample, key.epoch);
    const int64_t prefix = 1 + static_cast<int64_t>(random.below(0, static_cast<uint64_t>(length - 1)));
    std::copy_n(tokens.begin(), length, out.ids.begin());
    std::fill_n(out.targets.begin(), prefix - 1, kNoTarget);
    std::copy(tokens.begin() + prefix, tokens.end(), out.targets.begin() + prefix - 1);
    *out.prefix = prefix;
  }
};

// Number of targets among `tokens` tokens that may be masked.
int64_t targets_wanted(double fraction, int64_t tokens) {
  return std::max<int64_t>(1, std::llround(fraction * static_cast<double>(tokens)));
}

// BERT's masked language model (Devlin et al., 2019, section 3.1). A share of the tokens are targets, but never special
// tokens. 80% of the targets are replaced by the mask token, 10% by a random token, and 10% are not changed. The number
// of targets is exact, not random, and at least one. Only a sequence of special tokens alone has no target.
class MaskedObjective final : public TrainingObjective {
 public:
  MaskedObjective(const ObjectiveSettings& settings, const VocabularyFacts& vocabulary)
      : TrainingObjective(Objective::masked),
        fraction_(settings.mask_fraction),
        whole_words_(settings.whole_words),
        mask_(*vocabulary.mask_token),
        special_(static_cast<size_t>(vocabulary.vocab_size)),
        continues_(static_cast<size_t>(vocabulary.vocab_size)) {
    for (int64_t id = 0; id < vocabulary.vocab_size; id++) {
      special_[id] = vocabulary.is_special && vocabulary.is_special(id);
      continues_[id] = whole_words_ && vocabulary.starts_word && !vocabulary.starts_word(id);
    }
  }

  void write(std::span<const int64_t> tokens, const SampleKey& key, const SequenceSlot& out) const override {
    const size_t length = out.ids.size();
    std::copy_n(tokens.begin(), length, out.ids.begin());
    std::ranges::fill(out.targets, kNoTarget);
    Philox random(key.seed, RandomUse::masking, key.sample, key.epoch);
    // Random numbers [0, T) of the stream are for the shuffle. Position p uses the two from T + 2 p on.
    for (const Word& word : choose(words_of(tokens.first(length)), random)) {
      for (int64_t p = word.begin; p < word.end; p++) {
        out.targets[p] = tokens[p];
        const uint64_t draw = length + 2 * static_cast<uint64_t>(p);
        const uint64_t tenth = random.below(draw, 10);
        if (tenth < 8)
          out.ids[p] = mask_;
        else if (tenth == 8)
          out.ids[p] = static_cast<int64_t>(random.below(draw + 1, special_.size()));
      }
    }
  }

 private:
  struct Word {
    int64_t begin, end;  // positions of its pieces
    int64_t size() const { return end - begin; }
  };

  // Returns the units that are masked together: single tokens, or words with all their pieces in this sequence.
  std::vector<Word> words_of(std::span<const int64_t> tokens) const {
    std::vector<Word> words;
    bool open = false;  // the previous token belongs to a word that may continue
    for (int64_t p = 0; p < std::ssize(tokens); p++) {
      if (special_[tokens[p]]) {
        open = false;
      } else if (open && continues_[tokens[p]]) {
        words.back().end++;
      } else {
        words.push_back({p, p + 1});
        open = true;
      }
    }
    return words;
  }

  // Chooses words in random order until the number of wanted targets is reached. Skips a word that is longer than the
  // number of targets still wanted. If no word fits, takes the shortest.
  std::vector<Word> choose(std::vector<Word> words, const Philox& random) const {
    if (words.empty()) return {};
    int64_t pieces = 0;
    for (const Word& word : words) pieces += word.size();
    int64_t wanted = targets_wanted(fraction_, pieces);
    std::vector<Word> chosen;
    for (size_t i = 0; i < words.size() && wanted > 0; i++) {
      std::swap(words[i], words[i + random.below(i, words.size() - i)]);
      if (words[i].size() > wanted) continue;
      chosen.push_back(words[i]);
      wanted -= words[i].size();
    }
    if (chosen.empty()) chosen.push_back(*std::ranges::min_element(words, {}, &Word::size));
    return chosen;
  }

  double fraction_;
  bool whole_words_;
  int64_t mask_;
  std::vector<uint8_t> special_;    // by id
  std::vector<uint8_t> continues_;  // by id: true if it continues the word of the previous token
};

// Pairs of sequences that belong together, with the tokenizer's special tokens around each.
class ContrastiveObjective final : public TrainingObjective {
 public:
  ContrastiveObjective(const ObjectiveSettings& settings, const VocabularyFacts& vocabulary)
      : TrainingObjective(Objective::contrastive),
        texts_(settings.pairs == Pairs::neighbours ? settings.sequences_of_sample() : 1),
        before_(vocabulary.before),
        after_(vocabulary.after) {}

  int64_t texts() const override { return texts_; }
  int64_t text_length(int64_t length) const override { return length - std::ssize(before_) - std::ssize(after_); }

  void write(std::span<const int64_t> tokens, const SampleKey&, const SequenceSlot& out) const override {
    const auto most = static_cast<size_t>(text_length(std::ssize(out.ids)));
    auto to = std::ranges::copy(before_, out.ids.begin()).out;
    to = std::ranges::copy(tokens.first(std::min(most, tokens.size())), to).out;
    to = std::ranges::copy(after_, to).out;
    if (out.tokens) *out.tokens = to - out.ids.begin();
    std::fill(to, out.ids.end(), 0);
  }

 private:
  int64_t texts_;
  std::vector<int64_t> before_, after_;
};

// T5's span corruption (Raffel et al., 2020, section 3.1.4) for decoders. Spans of the text are missing in the input, and each
// leaves a sentinel. The target has the spans, each after its sentinel. The input is a prefix that is read both ways. Text
// begins outside of a span and ends in one. All ways to choose the lengths of spans and gaps are equally likely.
class SpansObjective final : public TrainingObjective {
 public:
  SpansObjective(const ObjectiveSettings& settings, const VocabularyFacts& vocabulary)
      : TrainingObjective(Objective::spans),
        settings_(settings),
        sentinels_(vocabulary.sentinels),
        end_(vocabulary.end_token) {}

  int64_t text_length(int64_t length) const override { return counts(length).tokens; }

  void write(std::span<const int64_t> tokens, const SampleKey& key, const SequenceSlot& out) const override {
    const SpanCounts count = counts(std::ssize(out.ids));
    const Philox random(key.seed, RandomUse::spans, key.sample, key.epoch);
    const std::vector<int64_t> spans = parts(count.missing, count.spans, random, 0),
                               gaps = parts(count.tokens - count.missing, count.spans, random, static_cast<uint64_t>(count.tokens));
    std::vector<int64_t> input, target;
    auto text = tokens.begin();
    for (size_t i = 0; i < spans.size(); i++) {
      input.insert(input.end(), text, text + gaps[i]);
      text += gaps[i];
      input.push_back(sentinels_[i]);
      target.push_back(sentinels_[i]);
      target.insert(target.end(), text, text + spans[i]);
      text += spans[i];
    }
    if (end_) {
      input.push_back(*end_);
      target.push_back(*end_);
    }
    *out.prefix = std::ssize(input);
    std::ranges::fill(out.targets, kNoTarget);
    std::ranges::copy(target, out.targets.begin() + std::ssize(input) - 1);
    std::ranges::copy(input, out.ids.begin());
    const auto rest = std::ranges::copy(target, out.ids.begin() + std::ssize(input)).out;
    std::fill(rest, out.ids.end(), 0);  // after all text, so no position with a target sees it
  }

 private:
  SpanCounts counts(int64_t length) const { return span_counts(settings_, length, end_.has_value()); }

  // Divides `n` into `count` parts of at least 1. Uses random numbers from `first` on.
  static std::vector<int64_t> parts(int64_t n, int64_t count, const Philox& random, uint64_t first) {
    std::vector<int64_t> cuts(static_cast<size_t>(n - 1));
    std::iota(cuts.begin(), cuts.end(), int64_t{1});
    for (size_t i = 0; i + 1 < static_cast<size_t>(count); i++)
      std::swap(cuts[i], cuts[i + random.below(first + i, cuts.size() - i)]);
    cuts.resize(static_cast<size_t>(count - 1));
    std::ranges::sort(cuts);
    cuts.push_back(n);
    std::adjacent_difference(cuts.begin(), cuts.end(), cuts.begin());
    return cuts;
  }

  ObjectiveSettings settings_;
  std::vector<int64_t> sentinels_;
  std::optional<int64_t> end_;
};

struct ObjectiveMaker {
  Objective kind;
  std::unique_ptr<TrainingObjective> (*make)(const ObjectiveSettings& settings, const VocabularyFacts& vocabulary);
};

template <class Made>
std::unique_ptr<TrainingObjective> make_plain(const ObjectiveSettings&, const VocabularyFacts&) {
  return std::make_unique<Made>();
}

constexpr ObjectiveMaker kMakers[] = {
    {Objective::causal, make_plain<CausalObjective>},
    {Objective::masked,
     [](const ObjectiveSettings& settings, const VocabularyFacts& vocabulary) -> std::unique_ptr<TrainingObjective> {
       return std::make_unique<MaskedObjective>(settings, vocabulary);
     }},
    {Objective::prefix, make_plain<PrefixObjective>},
    {Objective::contrastive,
     [](const ObjectiveSettings& settings, const VocabularyFacts& vocabulary) -> std::unique_ptr<TrainingObjective> {
       return std::make_unique<ContrastiveObjective>(settings, vocabulary);
     }},
    {Objective::spans,
     [](const ObjectiveSettings& settings, const VocabularyFacts& vocabulary) -> std::unique_ptr<TrainingObjective> {
       return std::make_unique<SpansObjective>(settings, vocabulary);
     }},
};

void check_spans(const ObjectiveSettings& settings, const VocabularyFacts& vocabulary, int64_t sequence) {
  const SpanCounts counts = span_counts(settings, sequence, vocabulary.end_token.has_value());
  if (counts.tokens == 0)
    throw UserError({"", "data.sequence", "at least 6 tokens for objective: spans", fmt::to_string(sequence), "raise data.sequence"});
  if (counts.spans > std::ssize(vocabulary.sentinels))
    throw UserError({"", "objective", fmt::format("a tokenizer with {} sentinels ({} and so on)", counts.spans, sentinel_name(0)),
                     fmt::format("a tokenizer with {}", vocabulary.sentinels.size()),
                     "use a tokenizer of T5, or data.tokenizer: {train: bpe}, which adds them"});
}

}  // namespace

VocabularyFacts facts_of(const Tokenizer& tokenizer) {
  VocabularyFacts facts;
  facts.vocab_size = tokenizer.vocab_size();
  if (auto mask = tokenizer.mask_token()) facts.mask_token = *mask;
  facts.is_special = [&tokenizer](int64_t id) { return tokenizer.is_special(static_cast<TokenId>(id)); };
  if (auto end = tokenizer.end_token()) facts.end_token = *end;
  for (int64_t i = 0;; i++) {
    const auto sentinel = tokenizer.id_of(sentinel_name(i));
    if (!sentinel) break;
    facts.sentinels.push_back(*sentinel);
  }
  // Any text shows which tokens are put around it.
  const std::vector<TokenId> plain = tokenizer.encode("a"), framed = tokenizer.encode("a", /*add_special=*/true);
  const auto inside = std::ranges::search(framed, plain);
  facts.before.assign(framed.begin(), inside.begin());
  facts.after.assign(inside.end(), framed.end());
  facts.starts_word = [&tokenizer](int64_t id) { return tokenizer.starts_word(static_cast<TokenId>(id)); };
  return facts;
}

std::string sentinel_name(int64_t number) { return fmt::format("<extra_id_{}>", number); }

SpanCounts span_counts(const ObjectiveSettings& settings, int64_t length, bool ends) {
  const auto of = [&](int64_t tokens) {
    const int64_t missing = std::clamp<int64_t>(std::llround(settings.span_fraction * static_cast<double>(tokens)), 1, tokens - 1);
    const int64_t spans = std::llround(static_cast<double>(missing) / settings.span_length);
    return SpanCounts{tokens, missing, std::clamp<int64_t>(spans, 1, std::min(missing, tokens - missing))};
  };
  const auto positions = [&](int64_t tokens) { return of(tokens).input() + of(tokens).target() + (ends ? 2 : 0); };
  int64_t tokens = length;
  while (tokens >= 2 && positions(tokens) > length) tokens--;
  return tokens < 2 ? SpanCounts{} : of(tokens);
}

int64_t most_targets(const ObjectiveSettings& settings, int64_t length) {
  if (row_of(settings.kind).moves_text) return std::max<int64_t>(1, span_counts(settings, length, /*ends=*/false).target() + 1);
  if (!row_of(settings.kind).few_targets) return length;
  // If no word is short enough, the shortest is taken whole. In practice every text has a word of at most this many
  // pieces.
  constexpr int64_t kShortWord = 8;
  const int64_t wanted = targets_wanted(settings.mask_fraction, length);
  return settings.whole_words ? std::max(wanted, std::min(length, kShortWord)) : wanted;
}

std::unique_ptr<TrainingObjective> make_objective(const ObjectiveSettings& settings,
                                                  const VocabularyFacts& vocabulary, int64_t sequence) {
  const ObjectiveRow& row = row_of(settings.kind);
  if (row.needs_mask && !vocabulary.mask_token)
    throw UserError(
        {.where = "",
         .key = "objective",
         .expected = fmt::format("a tokenizer with a mask token ([MASK] or <mask>) for the {} objective", row.word),
         .got = "a tokenizer without one",
         .hint = "train one, tokenizer: {train: bpe, vocab: 4096}, or name the tokenizer of a BERT model"});
  if (row.moves_text) check_spans(settings, vocabulary, sequence);
  if (row.has_prefix && sequence < 2)
    throw UserError({.where = "",
                     .key = "data.sequence",
                     .expected = fmt::format("at least 2 tokens for objective: {}", row.word),
                     .got = fmt::to_string(sequence),
                     .hint = "set data.sequence to 2 or more"});
  if (const int64_t special = std::ssize(vocabulary.before) + std::ssize(vocabulary.after); row.compares && sequence <= special)
    throw UserError({.where = "",
                     .key = "data.sequence",
                     .expected = fmt::format("more than {} tokens, because the tokenizer puts {} special tokens around a text",
                                             special, special),
                     .got = fmt::to_string(sequence),
                     .hint = "raise data.sequence"});
  for (const ObjectiveMaker& maker : kMakers)
    if (maker.kind == settings.kind) return maker.make(settings, vocabulary);
  MEGALITH_ASSERT(false, "data/objectives.cpp cannot make {}", row.word);
}

}  // namespace megalith
