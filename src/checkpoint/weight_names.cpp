#include "checkpoint/weight_names.h"

#include <algorithm>
#include <array>

namespace megalith {
namespace {

struct Pair {
  std::string_view table, head;
};

// BERT's bias is a pair of its own: forward uses decoder.bias, which is tied to bias together with the table.
constexpr std::array<Pair, 4> tied_pairs{{
    {"transformer.wte.weight", "lm_head.weight"},
    {"model.embed_tokens.weight", "lm_head.weight"},
    {"bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"},
    {"cls.predictions.bias", "cls.predictions.decoder.bias"},
}};

constexpr std::array<std::string_view, 3> prefixes{"transformer.", "bert.", "model."};

bool is_spelling_of(const std::string& stored, std::string_view name) {
  std::vector<std::string> spellings = other_spellings(std::string(name));
  return std::find(spellings.begin(), spellings.end(), stored) != spellings.end();
}

}  // namespace

std::vector<std::string> other_spellings(const std::string& name) {
  std::vector<std::string> names{name};
  for (std::string_view prefix : prefixes)
    if (name.starts_with(prefix)) names.push_back(name.substr(prefix.size()));
  for (size_t i = 0, count = names.size(); i < count; i++) {
    std::string old = names[i];
    if (old.ends_with("LayerNorm.weight"))
      names.push_back(old.replace(old.size() - 6, 6, "gamma"));
    else if (old.ends_with("LayerNorm.bias"))
      names.push_back(old.replace(old.size() - 4, 4, "beta"));
  }
  return names;
}

std::string tied_to(const std::string& table) {
  for (const Pair& pair : tied_pairs)
    if (pair.table == table) return std::string(pair.head);
  return "";
}

std::string table_behind(const std::string& stored, const std::set<std::string>& wanted) {
  for (const Pair& pair : tied_pairs) {
    bool table = wanted.contains(std::string(pair.table)), head = wanted.contains(std::string(pair.head));
    if (table == head) continue;
    if (is_spelling_of(stored, table ? pair.head : pair.table)) return std::string(pair.table);
  }
  return "";
}

bool is_no_parameter(std::string_view stored) {
  constexpr std::array<std::string_view, 4> buffers{"attn.bias", "attn.masked_bias", "rotary_emb.inv_freq",
                                                    "position_ids"};
  for (std::string_view buffer : buffers)
    if (stored == buffer || (stored.ends_with(buffer) && stored[stored.size() - buffer.size() - 1] == '.'))
      return true;
  return stored.starts_with("bert.pooler.") || stored.starts_with("pooler.") ||
         stored.starts_with("cls.seq_relationship.");
}

}  // namespace megalith
