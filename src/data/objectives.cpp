#include "data/objectives.h"

#include <algorithm>
#include <cmath>
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
};

}  // namespace

VocabularyFacts facts_of(const Tokenizer& tokenizer) {
  VocabularyFacts facts;
  facts.vocab_size = tokenizer.vocab_size();
  if (auto mask = tokenizer.mask_token()) facts.mask_token = *mask;
  facts.is_special = [&tokenizer](int64_t id) { return tokenizer.is_special(static_cast<TokenId>(id)); };
  facts.starts_word = [&tokenizer](int64_t id) { return tokenizer.starts_word(static_cast<TokenId>(id)); };
  return facts;
}

int64_t most_targets(const ObjectiveSettings& settings, int64_t length) {
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
  if (row.has_prefix && sequence < 2)
    throw UserError({.where = "",
                     .key = "data.sequence",
                     .expected = fmt::format("at least 2 tokens for objective: {}", row.word),
                     .got = fmt::to_string(sequence),
                     .hint = "set data.sequence to 2 or more"});
  for (const ObjectiveMaker& maker : kMakers)
    if (maker.kind == settings.kind) return maker.make(settings, vocabulary);
  MEGALITH_ASSERT(false, "data/objectives.cpp cannot make {}", row.word);
}

}  // namespace megalith
