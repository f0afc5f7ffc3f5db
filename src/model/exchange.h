// Messages between ranks that share the work of a block, while the block computes. The block decides what to send and when.
// The implementation decides how it is sent (in the tests: between threads of one process).
#pragma once
#include <cstdint>
#include <span>

#include "layout/mesh.h"

namespace at {
class Tensor;
}

namespace megalith {

// The ranks along one axis. All of them make every call, in the same order, on their compute lanes. Tensors are contiguous,
// on the CPU, and of one type. A call returns when the caller may use what it received and overwrite what it sent.
// Sums are taken in rank order, so that all ranks get the same bits. 16-bit values are added in float32.
//
// `cuts` are size() + 1 rising row numbers of the first dimension, from 0 to the number of rows. The slice of rank r is rows
// [cuts[r], cuts[r + 1]). Slices may be empty.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual int64_t size() const = 0;
  virtual int64_t rank() const = 0;
  // Returns how many rows a product must have so that sending its matrix to another rank pays off.
  virtual int64_t rows_worth_weights() const = 0;

  // The caller has filled the slice of this rank in `whole`. Fills the slices of the other ranks.
  virtual void all_gather(at::Tensor& whole, std::span<const int64_t> cuts) = 0;
  // Replaces the slice of this rank in `whole` with the sum over all ranks. The other slices are undefined afterwards.
  virtual void reduce_scatter(at::Tensor& whole, std::span<const int64_t> cuts) = 0;
  virtual void all_reduce(at::Tensor& x) = 0;
  // Sends slice r of `send` to rank r, and receives slice r of `receive` from rank r.
  virtual void all_to_all(const at::Tensor& send, std::span<const int64_t> send_cuts, at::Tensor& receive,
                          std::span<const int64_t> receive_cuts) = 0;

  // These two calls start a transfer that runs while the caller computes. The caller must not touch `send` and `receive`
  // until finish, and must make no other call before finish. A shift sends `send` to the next rank, and receives `receive`
  // from the previous rank. The next rank of the last one is rank 0.
  virtual void start_shift(const at::Tensor& send, at::Tensor& receive) = 0;
  virtual void start_all_to_all(const at::Tensor& send, std::span<const int64_t> send_cuts, at::Tensor& receive,
                                std::span<const int64_t> receive_cuts) = 0;
  virtual void finish() = 0;
};

// The exchanges of one rank, one for each axis that divides a block. Borrowed. Null for an axis of one rank.
struct Exchanges {
  Mesh mesh;  // of this rank
  Exchange* tensor = nullptr;
  Exchange* context = nullptr;
  Exchange* expert = nullptr;
};

}  // namespace megalith
