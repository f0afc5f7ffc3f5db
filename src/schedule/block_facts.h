// The facts that passes, checker and simulator know about a block: sizes in bytes, work in floating-point operations.
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "layout/axis.h"
#include "schedule/op.h"

namespace megalith {

enum class BlockKind : uint8_t { embedding, layer, head };

// The tensors that a layer keeps from forward to backward.
enum class Keep : uint8_t {
  all,        // everything that backward needs
  attention,  // its input and what the attention half saves; the feed-forward half is recomputed before backward
  input,      // its input only; forward is recomputed
  none,       // nothing; the recomputation of the previous block computes its input again
};

// The exchanges of a block with the ranks along one axis, per micro-batch.
struct ExchangeFacts {
  int64_t calls = 0;
  int64_t bytes = 0;  // bytes that this rank sends
  bool operator==(const ExchangeFacts&) const = default;
};

// Exchanges along each axis.
struct AxisExchanges {
  std::array<ExchangeFacts, kAxes> by_axis{};
  ExchangeFacts& operator[](Axis axis) { return by_axis[static_cast<size_t>(axis)]; }
  const ExchangeFacts& operator[](Axis axis) const { return by_axis[static_cast<size_t>(axis)]; }
};

// The work of a block's forward or backward, or of a part of it, per micro-batch.
struct BlockWork {
  double flop = 0;            // operations of the matrix products; a multiply and an add count as two
  int64_t touched_bytes = 0;  // memory traffic of everything except the matrix products
  AxisExchanges exchanges = {};
  BlockWork& operator+=(const BlockWork& other);
  BlockWork& operator-=(const BlockWork& other);
};

// Describes a block, from its list of parameters. block_facts in families/facts.cpp fills it in.
struct BlockIdentity {
  std::string name;                // "embedding", "layer 3", "head"
  BlockKind kind = BlockKind::layer;
  BlockId tied_to = kNoBlock;      // head: block whose table it multiplies with and adds gradients to
  int64_t parameters = 0;          // elements of this block on this rank
  int64_t expert_parameters = 0;   // part of `parameters` in experts that are spread over ranks
  int64_t compute_copy_bytes = 0;  // second copy of the parameters, in the precision of the computation
  bool scores_batch = false;       // head: its loss is a function of the whole batch, not a sum over micro-batches
};

// The costs of one micro-batch in a block. The model family fills it in (families/NAME/facts.cpp).
struct BlockCosts {
  BlockWork forward, backward;
  int64_t saved_bytes = 0;            // bytes that forward saves for backward, without the input
  int64_t attention_saved_bytes = 0;  // the attention half's part of saved_bytes
  bool packs_input = false;           // saved_bytes includes a packed copy of the input; the input itself is freed
  int64_t output_bytes = 0;           // the activation that the next block gets
  int64_t workspace_bytes = 0;        // largest temporaries while forward or backward runs
  int64_t validation_bytes = 0;       // the same in validation, which keeps nothing and drops no tokens
  int64_t sparse_gradient_bytes = 0;  // rows that one backward leaves for embedding_gradient
  bool backward_uses_parameters = true;
  // If backward defers its weight products:
  double weight_flop = 0;            // the weight products' part of backward's flop
  int64_t deferred_bytes = 0;        // operands that are kept for the weight products
  int64_t deferring_workspace_bytes = 0;  // workspace of that backward; below 0 if the operands were on the tape before
  int64_t weight_gradient_workspace_bytes = 0;
  // Head whose loss is a function of the whole batch:
  BlockWork batch;                    // the loss of the batch and its gradients
  int64_t batch_workspace_bytes = 0;  // the representations of the whole batch, their gradients and temporaries
  // Parts of forward that a recomputation can leave out:
  BlockWork attention;  // up to the output of the attention heads
  BlockWork output;     // work that only the output needs

  bool drops_tokens() const { return validation_bytes > saved_bytes + workspace_bytes; }
  // The work of recomputing forward in a layer that kept `keep`. `with_output`: also makes the next layer's input.
  BlockWork again(Keep keep, bool with_output) const;
};

// The size of the optimizer state, and the memory that moving a block's state needs. facts_for in planner/run_blocks.cpp
// fills it in.
struct BlockStorage {
  int64_t optimizer_bytes = 0;         // size of the block's optimizer state
  int64_t expert_optimizer_bytes = 0;  // part of optimizer_bytes of experts that are spread over ranks
  int64_t optimizer_disk_bytes = 0;    // disk space of the optimizer state, in whole chunks
  int64_t values_disk_bytes = 0;       // disk space of one float32 array, such as the parameters or the gradient
  bool optimizer_streams = true;       // the state has one number per element and can be on disk; else it stays in memory
  int64_t save_workspace_bytes = 0;    // staging while the block is written to a checkpoint
  int64_t stream_bytes = 0;            // staging while its state streams from and to the disk
  int64_t load_bytes = 0;              // staging while only its parameters are loaded
  bool streams_amply = false;          // staging is ample: more would not help
  int64_t call_bytes = 0;              // staging while forward waits for experts that were not loaded in advance
  int64_t input_offload_bytes = 0;     // staging while its input is offloaded or reloaded
};

struct BlockFacts : BlockIdentity, BlockCosts, BlockStorage {};

}  // namespace megalith
