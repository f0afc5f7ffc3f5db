// What ranks that share the work of a block send each other while it computes. The block says what and when; how it
// travels is whoever implements this (the tests: threads of one process).
#pragma once
#include <cstdint>
#include <span>

#include "layout/mesh.h"

namespace at {
class Tensor;
}

namespace megalith {

// The ranks along one axis. Every call is made by all of them, in the same order, on their compute lanes, with tensors
// that are contiguous, on the CPU, of one type; it returns when the caller may use what it received and overwrite what
// it gave. Sums are taken in the order of the ranks, so that all have the same bits; 16-bit values are added in float32.
//
// `cuts` are size() + 1 rising rows of the first dimension, from 0 to all: rank r's slice is rows [cuts[r], cuts[r + 1]).
// Slices may be empty.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual int64_t size() const = 0;
  virtual int64_t rank() const = 0;
  // With how many rows of a product its matrix is worth sending: what the way costs against the work.
  virtual int64_t rows_worth_weights() const = 0;

  // My slice of `whole` is there; the others' arrive.
  virtual void all_gather(at::Tensor& whole, std::span<const int64_t> cuts) = 0;
  // My slice of `whole` becomes the sum of all ranks'; what the rest of it holds afterwards is not said.
  virtual void reduce_scatter(at::Tensor& whole, std::span<const int64_t> cuts) = 0;
  virtual void all_reduce(at::Tensor& x) = 0;
  // Slice r of `send` goes to rank r; slice r of `receive` comes from it.
  virtual void all_to_all(const at::Tensor& send, std::span<const int64_t> send_cuts, at::Tensor& receive,
                          std::span<const int64_t> receive_cuts) = 0;

  // Two calls that travel while the caller computes: it leaves `send` and `receive` alone until finish. One at a time, and
  // no other call in between. A shift: `send` goes to the next rank, `receive` comes from the one before (the last's next
  // is the first).
  virtual void start_shift(const at::Tensor& send, at::Tensor& receive) = 0;
  virtual void start_all_to_all(const at::Tensor& send, std::span<const int64_t> send_cuts, at::Tensor& receive,
                                std::span<const int64_t> receive_cuts) = 0;
  virtual void finish() = 0;
};

// The exchanges of one rank along each axis inside blocks. Borrowed; null along an axis of one rank.
struct Exchanges {
  Mesh mesh;  // of this rank
  Exchange* tensor = nullptr;
  Exchange* context = nullptr;
  Exchange* expert = nullptr;
};

}  // namespace megalith
