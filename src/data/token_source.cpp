#include "data/token_source.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace megalith {

void MemorySource::copy(int64_t begin, std::span<int64_t> out) const {
  MEGALITH_ASSERT(begin >= 0 && begin + std::ssize(out) <= tokens(), "{} + {} of {}", begin, out.size(),
                  tokens());
  std::copy_n(ids_.begin() + begin, out.size(), out.begin());
}

ConcatenatedSource::ConcatenatedSource(TokenSources sources) : sources_(std::move(sources)) {
  int64_t end = 0;
  for (const auto& source : sources_) ends_.push_back(end += source->tokens());
}

void ConcatenatedSource::copy(int64_t begin, std::span<int64_t> out) const {
  MEGALITH_ASSERT(begin >= 0 && begin + std::ssize(out) <= tokens(), "{} + {} of {}", begin, out.size(),
                  tokens());
  auto which = static_cast<size_t>(std::ranges::upper_bound(ends_, begin) - ends_.begin());
  while (!out.empty()) {
    const TokenSource& source = *sources_[which];
    int64_t inside = begin - (ends_[which] - source.tokens());
    int64_t count = std::min<int64_t>(std::ssize(out), source.tokens() - inside);
    source.copy(inside, out.first(static_cast<size_t>(count)));
    out = out.subspan(static_cast<size_t>(count));
    begin += count;
    which++;
  }
}

std::string ConcatenatedSource::name() const {
  if (sources_.empty()) return "no data";
  if (sources_.size() == 1) return sources_[0]->name();
  return fmt::format("{} and {} more", sources_[0]->name(), sources_.size() - 1);
}

}  // namespace megalith
