#include "text/bpe_model.h"

#include <algorithm>
#include <bit>
#include <queue>

#include "text/utf8.h"

namespace megalith {

MergeTable::MergeTable(size_t merges) : slots_(std::bit_ceil(2 * merges + 1)) {}

void MergeTable::add(TokenId left, TokenId right, Merge merge) {
  uint64_t pair = static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
  slots_[place(pair)] = {pair, merge};
}

void BpeModel::encode_word(std::string_view word, std::vector<TokenId>& ids) const {
  if (!cut_before_.empty()) {
    // No merge crosses these places. So a text that arrives as one word is cut here, and its short words can be cached.
    for (size_t at = cut_before_.size(); (at = word.find(cut_before_, at)) != std::string_view::npos;) {
      if (word.substr(at - cut_before_.size(), cut_before_.size()) == cut_before_) {
        at += cut_before_.size();  // a run of marks stays together
        continue;
      }
      encode_cached(word.substr(0, at), ids);
      word.remove_prefix(at);
      at = cut_before_.size();
    }
  }
  encode_cached(word, ids);
}

void BpeModel::compute(std::string_view word, std::vector<TokenId>& symbols) const {
  if (ignore_merges_)
    if (auto whole = vocab_.find(word); whole != vocab_.end()) return symbols.push_back(whole->second);
  first_symbols(word, symbols);
  if (symbols.size() <= kShort)
    merge_short(symbols);
  else
    merge_long(symbols);
  if (!inner_names_.empty()) replace_inner(symbols);
}

void BpeModel::replace_inner(std::vector<TokenId>& symbols) const {
  std::vector<TokenId> out;
  for (TokenId id : symbols) {
    if (id < first_inner_) {
      out.push_back(id);
    } else if (byte_fallback_) {
      for (char c : inner_names_[static_cast<size_t>(id - first_inner_)])
        out.push_back(byte_ids_[static_cast<unsigned char>(c)]);
    } else if (out.empty() || out.back() != unknown_) {
      out.push_back(*unknown_);
    }
  }
  // A symbol that was unknown from the start may now be next to one that became unknown here.
  if (fuse_unknown_ && !byte_fallback_)
    out.erase(
        std::unique(out.begin(), out.end(), [&](TokenId a, TokenId b) { return a == b && a == unknown_; }),
        out.end());
  symbols = std::move(out);
}

void BpeModel::first_symbols(std::string_view word, std::vector<TokenId>& symbols) const {
  bool last_unknown = false;
  auto add_unknown = [&] {
    if (unknown_ && !(fuse_unknown_ && last_unknown)) symbols.push_back(*unknown_);
    last_unknown = true;
  };
  auto byte_id = [&](char c) { return byte_ids_[static_cast<unsigned char>(c)]; };
  if (byte_level_) {
    for (char c : word) {
      if (TokenId id = byte_id(c); id >= 0) {
        symbols.push_back(id);
        last_unknown = false;
      } else {
        add_unknown();
      }
    }
    return;
  }
  for (size_t at = 0; at < word.size();) {
    std::string_view character = word.substr(at, code_point_at(word, at).bytes);
    at += character.size();
    if (auto found = vocab_.find(character); found != vocab_.end()) {
      symbols.push_back(found->second);
      last_unknown = false;
    } else if (byte_fallback_ &&
               std::all_of(character.begin(), character.end(), [&](char c) { return byte_id(c) >= 0; })) {
      for (char c : character) symbols.push_back(byte_id(c));
      last_unknown = false;
    } else {
      add_unknown();
    }
  }
}

// Scans for the lowest rank each time, which is fastest for the few symbols of a word.
void BpeModel::merge_short(std::vector<TokenId>& symbols) const {
  std::array<MergeTable::Merge, kShort> merges;  // merges[i] joins symbols i and i + 1
  size_t count = symbols.size();
  auto look_up = [&](size_t i) { merges[i] = merges_.find(symbols[i], symbols[i + 1]); };
  for (size_t i = 0; i + 1 < count; i++) look_up(i);
  while (count > 1) {
    size_t best = count;
    for (size_t i = 0; i + 1 < count; i++)
      if (merges[i].rank >= 0 && (best == count || merges[i].rank < merges[best].rank)) best = i;
    if (best == count) break;
    symbols[best] = merges[best].joined;
    for (size_t i = best + 1; i + 1 < count; i++) {
      symbols[i] = symbols[i + 1];
      merges[i] = merges[i + 1];
    }
    count--;
    if (best > 0) look_up(best - 1);
    if (best + 1 < count) look_up(best);
  }
  symbols.resize(count);
}

// Uses a heap of candidate pairs over a linked list: n log n time for a word of any length.
void BpeModel::merge_long(std::vector<TokenId>& symbols) const {
  struct Node {
    TokenId id;
    int64_t previous, next;
  };
  struct Candidate {
    int32_t rank;
    int64_t at;
    TokenId left, right, joined;
    bool operator<(const Candidate& o) const { return rank != o.rank ? rank > o.rank : at > o.at; }
  };
  int64_t count = static_cast<int64_t>(symbols.size());
  std::vector<Node> nodes(symbols.size());
  for (int64_t i = 0; i < count; i++) nodes[i] = {symbols[i], i - 1, i + 1 < count ? i + 1 : -1};
  std::priority_queue<Candidate> queue;
  auto consider = [&](int64_t at) {
    int64_t next = at < 0 ? -1 : nodes[at].next;
    if (next < 0) return;
    auto merge = merges_.find(nodes[at].id, nodes[next].id);
    if (merge.rank >= 0) queue.push({merge.rank, at, nodes[at].id, nodes[next].id, merge.joined});
  };
  for (int64_t i = 0; i < count; i++) consider(i);
  while (!queue.empty()) {
    Candidate best = queue.top();
    queue.pop();
    int64_t next = nodes[best.at].next;  // joined nodes have id -1, so stale candidates do not match
    if (nodes[best.at].id != best.left || next < 0 || nodes[next].id != best.right) continue;
    nodes[best.at].id = best.joined;
    nodes[best.at].next = nodes[next].next;
    if (nodes[next].next >= 0) nodes[nodes[next].next].previous = best.at;
    nodes[next].id = -1;
    consider(nodes[best.at].previous);
    consider(best.at);
  }
  symbols.clear();
  for (int64_t i = 0; i >= 0; i = nodes[i].next) symbols.push_back(nodes[i].id);
}

}  // namespace megalith
