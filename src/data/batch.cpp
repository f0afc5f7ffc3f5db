#include "data/batch.h"

#include <algorithm>
#include <functional>
#include <span>
#include <string_view>

#include "base/error.h"

namespace megalith {

void Batch::trim() {
  constexpr int64_t kMultiple = 8;
  if (tokens.empty()) return;
  const int64_t longest = *std::ranges::max_element(tokens);
  const int64_t shorter = std::min(length, (longest + kMultiple - 1) / kMultiple * kMultiple);
  for (int64_t s = 0; s < sequences; s++) std::copy_n(ids.begin() + s * length, shorter, ids.begin() + s * shorter);
  ids.resize(static_cast<size_t>(sequences * shorter));
  length = shorter;
}

std::vector<uint64_t> Batch::text_marks() const {
  std::vector<uint64_t> marks;
  for (int64_t s = 0; s < sequences; s++) {
    const auto count = static_cast<size_t>(tokens.empty() ? length : tokens[static_cast<size_t>(s)]);
    const auto text = std::as_bytes(std::span(ids).subspan(static_cast<size_t>(s * length), count));
    marks.push_back(std::hash<std::string_view>{}({reinterpret_cast<const char*>(text.data()), text.size()}));
  }
  return marks;
}

Batch Batch::slice(int64_t begin, int64_t count) const {
  MEGALITH_ASSERT(begin >= 0 && count >= 0 && begin + count <= sequences, "{} + {} of {}", begin, count, sequences);
  Batch part;
  part.sequences = count;
  part.length = length;
  part.ids.assign(ids.begin() + begin * length, ids.begin() + (begin + count) * length);
  if (!targets.empty()) part.targets.assign(targets.begin() + begin * length, targets.begin() + (begin + count) * length);
  if (!tokens.empty()) part.tokens.assign(tokens.begin() + begin, tokens.begin() + begin + count);
  part.comparison = comparison;
  if (!prefix.empty()) part.prefix.assign(prefix.begin() + begin, prefix.begin() + begin + count);
  if (!document_begin.empty())
    part.document_begin.assign(document_begin.begin() + begin * length,
                               document_begin.begin() + (begin + count) * length);
  part.dropping = {dropping.kept, dropping.layers, {}};
  if (!dropping.always.empty())
    part.dropping.always.assign(dropping.always.begin() + begin * length,
                                dropping.always.begin() + (begin + count) * length);
  part.first_sequence = first_sequence + begin;
  return part;
}

}  // namespace megalith
