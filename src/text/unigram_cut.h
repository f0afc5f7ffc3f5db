// Cuts a word into known pieces, so that the sum of their scores is as large as possible.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/byte_trie.h"
#include "text/utf8.h"

namespace megalith {

struct UnigramPiece {
  static constexpr int32_t kUnknown = -1;
  size_t begin, end;  // byte positions in the word
  int32_t id;         // kUnknown for a character that is not a piece
};

// Dynamic programming from the left. Time is proportional to the length of the word times that of the longest piece. If
// two sums are equal, the cut found first wins. `Sum` is the type of the sums: double as in Hugging Face, float as in
// SentencePiece. When a sum exceeds `largest`, it is subtracted from all open sums, as SentencePiece does. So float
// stays as precise in long texts as in short ones. `score(id, bytes)` returns the score of a piece. Pieces for which
// `usable(id)` is false are skipped. `cut` receives the pieces from last to first.
template <class Sum, class Score, class Usable>
void best_cut(const ByteTrie& pieces, std::string_view word, Sum unknown_score, Sum largest, Score score, Usable usable,
              std::vector<UnigramPiece>& cut) {
  struct End {  // the best cut that ends here
    Sum sum;
    int32_t id;
    int64_t begin;  // beginning of the cut's last piece; -1: no cut found yet
  };
  thread_local std::vector<End> ends;
  ends.assign(word.size() + 1, End{0, 0, -1});
  size_t farthest = 0;  // largest end of a piece so far
  for (size_t at = 0; at < word.size();) {
    if (const Sum sum = ends[at].sum; std::abs(sum) > largest)
      for (size_t end = at; end <= farthest; end++)
        if (ends[end].begin >= 0) ends[end].sum -= sum;
    const Sum till_here = ends[at].sum;
    auto offer = [&](size_t end, Sum piece_score, int32_t id) {
      farthest = std::max(farthest, end);
      const Sum sum = piece_score + till_here;
      if (ends[end].begin < 0 || sum > ends[end].sum) ends[end] = {sum, id, static_cast<int64_t>(at)};
    };
    const size_t character = code_point_at(word, at).bytes;
    bool has_character = false;
    int32_t node = ByteTrie::kRoot;
    for (size_t end = at; end < word.size();) {
      node = pieces.step(node, word[end++]);
      if (node == ByteTrie::kNone) break;
      int32_t id = pieces.value(node);
      if (id == ByteTrie::kNone || !usable(id)) continue;
      offer(end, score(id, end - at), id);
      has_character |= end - at == character;
    }
    if (!has_character) offer(at + character, unknown_score, UnigramPiece::kUnknown);
    at += character;
  }
  cut.clear();
  for (size_t end = word.size(); end > 0;) {
    auto begin = static_cast<size_t>(ends[end].begin);
    cut.push_back({begin, end, ends[end].id});
    end = begin;
  }
}

}  // namespace megalith
