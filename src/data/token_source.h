// A stream of tokens with random access. Thread-safe to read.
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
  // Returns one past the last token of the document that contains `position`. The token that ends a document belongs to
  // it.
  virtual int64_t document_end(int64_t position) const = 0;
  virtual int64_t documents() const = 0;
  // Returns the position of the first token of a document; tokens() if `document` is documents().
  virtual int64_t document_begin(int64_t document) const = 0;
  // The name of the file or other source, for messages.
  virtual std::string name() const = 0;
};

using TokenSources = std::vector<std::unique_ptr<const TokenSource>>;

// Tokens in memory.
class MemorySource final : public TokenSource {
 public:
  // `document_ends` ascend, and there are no empty documents. The last document always ends with the last token.
  explicit MemorySource(std::vector<int64_t> ids, std::string name = "tokens in memory",
                        std::vector<int64_t> document_ends = {})
      : ids_(std::move(ids)), name_(std::move(name)), document_ends_(std::move(document_ends)) {}
  int64_t tokens() const override { return static_cast<int64_t>(ids_.size()); }
  void copy(int64_t begin, std::span<int64_t> out) const override;
  int64_t document_end(int64_t position) const override;
  int64_t documents() const override;
  int64_t document_begin(int64_t document) const override;
  std::string name() const override { return name_; }

 private:
  std::vector<int64_t> ids_;
  std::string name_;
  std::vector<int64_t> document_ends_;
};

// Several sources as one stream, in the given order. A document never continues from one source into the next.
class ConcatenatedSource final : public TokenSource {
 public:
  explicit ConcatenatedSource(TokenSources sources);
  int64_t tokens() const override { return ends_.empty() ? 0 : ends_.back(); }
  void copy(int64_t begin, std::span<int64_t> out) const override;
  int64_t document_end(int64_t position) const override;
  int64_t documents() const override { return document_ends_.empty() ? 0 : document_ends_.back(); }
  int64_t document_begin(int64_t document) const override;
  std::string name() const override;  // "a.txt", "a.txt and 3 more"
  std::span<const std::unique_ptr<const TokenSource>> sources() const { return sources_; }

  struct Place {
    const TokenSource& source;
    int64_t inside;  // position in the source
  };
  Place locate(int64_t position) const;

 private:
  size_t which(int64_t position) const;  // index of the source
  TokenSources sources_;
  std::vector<int64_t> ends_;  // one past the last token of each source, in the stream
  std::vector<int64_t> document_ends_;  // the same for documents
};

}  // namespace megalith
