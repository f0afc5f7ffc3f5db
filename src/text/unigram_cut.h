// Of all ways to cut a word into known pieces the one with the best sum of scores.
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
  size_t begin, end;  // bytes of the word
  int32_t id;         // kUnknown: a character that is no piece by itself
};

// Dynamic programming from the left: time grows with the word's length times that of the longest piece. Of
// two equal sums the one found first stays. `Sum` is the type sums are kept in: double as Hugging Face does,
// float as SentencePiece, which starts again from 0 where a sum has come to `largest`, so that long texts are cut as
// finely as short ones. `score(id, bytes)` is a piece's score; ids for which `usable` fails are passed over. `cut` is
// set to the pieces from the last to the first.
template <class Sum, class Score, class Usable>
void best_cut(const ByteTrie& pieces, std::string_view word, Sum unknown_score, Sum largest, Score score, Usable usable,
              std::vector<UnigramPiece>& cut) {
  struct End {  // the best cut that ends here
    Sum sum;
    int32_t id;
    int64_t begin;  // of its last piece; -1: none yet
  };
  thread_local std::vector<End> ends;
  ends.assign(word.size() + 1, End{0, 0, -1});
  size_t farthest = 0;  // end that was offered
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
