// Where tokens come from: a stream with random access. Thread-safe to read.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace megalith {

class TokenSource {
 public:
  virtual ~TokenSource() = default;
  virtual int64_t tokens() const = 0;
  // Fills `out` with tokens [begin, begin + out.size()), which must exist.
  virtual void copy(int64_t begin, std::span<int64_t> out) const = 0;
  // The file or thing it comes from, for messages.
  virtual std::string name() const = 0;
};

using TokenSources = std::vector<std::unique_ptr<const TokenSource>>;

// Tokens that are in memory already.
class MemorySource final : public TokenSource {
 public:
  explicit MemorySource(std::vector<int64_t> ids, std::string name = "tokens in memory")
      : ids_(std::move(ids)), name_(std::move(name)) {}
  int64_t tokens() const override { return static_cast<int64_t>(ids_.size()); }
  void copy(int64_t begin, std::span<int64_t> out) const override;
  std::string name() const override { return name_; }

 private:
  std::vector<int64_t> ids_;
  std::string name_;
};

// Several sources as one stream, in the order given.
class ConcatenatedSource final : public TokenSource {
 public:
  explicit ConcatenatedSource(TokenSources sources);
  int64_t tokens() const override { return ends_.empty() ? 0 : ends_.back(); }
  void copy(int64_t begin, std::span<int64_t> out) const override;
  std::string name() const override;  // "a.txt", "a.txt and 3 more"
  std::span<const std::unique_ptr<const TokenSource>> sources() const { return sources_; }

 private:
  TokenSources sources_;
  std::vector<int64_t> ends_;  // of each source in the stream, one past its last token
};

}  // namespace megalith
