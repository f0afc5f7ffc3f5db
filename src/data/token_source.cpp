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

int64_t MemorySource::document_end(int64_t position) const {
  auto end = std::ranges::upper_bound(document_ends_, position);
  return end == document_ends_.end() ? tokens() : *end;
}

int64_t MemorySource::documents() const {
  const bool ended = !document_ends_.empty() && document_ends_.back() == tokens();
  return std::ssize(document_ends_) + (ended || ids_.empty() ? 0 : 1);
}

int64_t MemorySource::document_begin(int64_t document) const {
  if (document == 0) return 0;
  return document <= std::ssize(document_ends_) ? document_ends_[static_cast<size_t>(document - 1)] : tokens();
}

ConcatenatedSource::ConcatenatedSource(TokenSources sources) : sources_(std::move(sources)) {
  int64_t end = 0, documents = 0;
  for (const auto& source : sources_) {
    ends_.push_back(end += source->tokens());
    document_ends_.push_back(documents += source->documents());
  }
}

int64_t ConcatenatedSource::document_begin(int64_t document) const {
  if (document == documents()) return tokens();
  const auto number = static_cast<size_t>(std::ranges::upper_bound(document_ends_, document) - document_ends_.begin());
  const TokenSource& source = *sources_[number];
  const int64_t inside = document - (document_ends_[number] - source.documents());
  return ends_[number] - source.tokens() + source.document_begin(inside);
}

size_t ConcatenatedSource::which(int64_t position) const {
  return static_cast<size_t>(std::ranges::upper_bound(ends_, position) - ends_.begin());
}

ConcatenatedSource::Place ConcatenatedSource::locate(int64_t position) const {
  MEGALITH_ASSERT(position >= 0 && position < tokens(), "{} of {}", position, tokens());
  const size_t number = which(position);
  const TokenSource& source = *sources_[number];
  return {source, position - (ends_[number] - source.tokens())};
}

int64_t ConcatenatedSource::document_end(int64_t position) const {
  const Place place = locate(position);
  return position - place.inside + place.source.document_end(place.inside);
}

void ConcatenatedSource::copy(int64_t begin, std::span<int64_t> out) const {
  MEGALITH_ASSERT(begin >= 0 && begin + std::ssize(out) <= tokens(), "{} + {} of {}", begin, out.size(),
                  tokens());
  size_t number = which(begin);
  while (!out.empty()) {
    const TokenSource& source = *sources_[number];
    int64_t inside = begin - (ends_[number] - source.tokens());
    int64_t count = std::min<int64_t>(std::ssize(out), source.tokens() - inside);
    source.copy(inside, out.first(static_cast<size_t>(count)));
    out = out.subspan(static_cast<size_t>(count));
    begin += count;
    number++;
  }
}

std::string ConcatenatedSource::name() const {
  if (sources_.empty()) return "no data";
  if (sources_.size() == 1) return sources_[0]->name();
  return fmt::format("{} and {} more", sources_[0]->name(), sources_.size() - 1);
}

}  // namespace megalith
