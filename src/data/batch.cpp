#include "data/batch.h"

#include "base/error.h"

namespace megalith {

Batch Batch::slice(int64_t begin, int64_t count) const {
  MEGALITH_ASSERT(begin >= 0 && count >= 0 && begin + count <= sequences, "{} + {} of {}", begin, count, sequences);
  Batch part;
  part.sequences = count;
  part.length = length;
  part.ids.assign(ids.begin() + begin * length, ids.begin() + (begin + count) * length);
  part.targets.assign(targets.begin() + begin * length, targets.begin() + (begin + count) * length);
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
